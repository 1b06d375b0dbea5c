// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
//
// The kernels: rows of logits in, 16 bytes at a time, whatever their alignment.

#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../draft_logits.h"

namespace vllm_eagle3 {

constexpr int kThreads = 512;
constexpr int kWarp = 32;

// What one load or store moves.
template <class Bits>
struct alignas(16) Pack {
  static constexpr int64_t size = 16 / sizeof(Bits);
  Bits bits[size];
};

DRAFT_LOGITS_INLINE int64_t divide_up(int64_t count, int64_t by) {
  return (count + by - 1) / by;
}

// Logits that each of `segments` blocks reads of a row: whole packs, so that all
// segments are aligned alike.
template <class Bits>
DRAFT_LOGITS_INLINE int64_t segment_length(int64_t width, int64_t segments) {
  return divide_up(divide_up(width, segments), Pack<Bits>::size) * Pack<Bits>::size;
}

// Blocks that write a row of `wide` target ids: a thread writes about four packs.
template <class Bits>
DRAFT_LOGITS_INLINE int64_t blocks_for_wide_row(int64_t wide) {
  return divide_up(wide, 4 * kThreads * Pack<Bits>::size);
}

// Elements before the first that lies on 16 bytes, at most `count`.
template <class Bits>
__device__ int64_t unaligned_head(const Bits* data, int64_t count) {
  const auto past = reinterpret_cast<uintptr_t>(data) % sizeof(Pack<Bits>);
  const int64_t head =
      past == 0 ? 0 : static_cast<int64_t>((sizeof(Pack<Bits>) - past) / sizeof(Bits));
  return min(head, count);
}

template <class Bits>
__device__ uint64_t consider(uint64_t best, Bits bits, Bits infinity, int64_t id) {
  const uint64_t found =
      candidate(order_key(bits, infinity), static_cast<uint32_t>(id));
  return max(best, found);
}

// The best candidate of logits `[begin, end)` of a row, over the threads of a block.
template <class Bits>
__device__ uint64_t best_of_thread(const Bits* row, int64_t begin, int64_t end,
                                   Bits infinity) {
  uint64_t best = 0;
  const int64_t head = unaligned_head(row + begin, end - begin);
  const int64_t packs = (end - begin - head) / Pack<Bits>::size;
  const auto* body = reinterpret_cast<const Pack<Bits>*>(row + begin + head);
  for (int64_t id = begin + threadIdx.x; id < begin + head; id += kThreads) {
    best = consider(best, row[id], infinity, id);
  }
#pragma unroll 4
  for (int64_t pack = threadIdx.x; pack < packs; pack += kThreads) {
    const Pack<Bits> loaded = body[pack];
    const int64_t first = begin + head + pack * Pack<Bits>::size;
#pragma unroll
    for (int i = 0; i < Pack<Bits>::size; ++i) {
      best = consider(best, loaded.bits[i], infinity, first + i);
    }
  }
  const int64_t tail = begin + head + packs * Pack<Bits>::size;
  for (int64_t id = tail + threadIdx.x; id < end; id += kThreads) {
    best = consider(best, row[id], infinity, id);
  }
  return best;
}

__device__ __forceinline__ uint64_t best_of_warp(uint64_t best) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const uint64_t other = __shfl_xor_sync(0xffffffffu, best, distance);
    best = max(best, other);
  }
  return best;
}

__device__ __forceinline__ uint64_t best_of_block(uint64_t best) {
  __shared__ uint64_t of_warps[kThreads / kWarp];
  best = best_of_warp(best);
  if (threadIdx.x % kWarp == 0) {
    of_warps[threadIdx.x / kWarp] = best;
  }
  __syncthreads();
  const bool used = threadIdx.x < kThreads / kWarp;
  return best_of_warp(used ? of_warps[threadIdx.x] : 0);
}

// Block (segment, token). With one segment a row the result is final, else `partial`
// holds one candidate for each segment.
template <class Bits>
__global__ void __launch_bounds__(kThreads)
    argmax_segments(const Bits* logits, int64_t stride, int64_t width, int64_t segment,
                    Bits infinity, const int64_t* target_ids, uint64_t* partial,
                    int64_t* result) {
  const int64_t token = blockIdx.y;
  const int64_t begin = blockIdx.x * segment;
  const int64_t end = min(begin + segment, width);
  uint64_t best = best_of_thread(logits + token * stride, begin, end, infinity);
  best = best_of_block(best);
  if (threadIdx.x == 0) {
    if (partial != nullptr) {
      partial[token * gridDim.x + blockIdx.x] = best;
    } else {
      result[token] = to_target(candidate_draft_id(best), target_ids);
    }
  }
}

// One warp for each token.
static __global__ void argmax_of_segments(const uint64_t* partial, int64_t segments,
                                   const int64_t* target_ids, int64_t* result) {
  const int64_t token = blockIdx.x;
  uint64_t best = 0;
  for (int64_t i = threadIdx.x; i < segments; i += kWarp) {
    best = max(best, partial[token * segments + i]);
  }
  best = best_of_warp(best);
  if (threadIdx.x == 0) {
    result[token] = to_target(candidate_draft_id(best), target_ids);
  }
}

// Block (piece of the row, token): each thread writes whole packs of target ids.
template <class Bits>
__global__ void __launch_bounds__(kThreads)
    widen_rows(const Bits* logits, int64_t stride, const int32_t* draft_ids,
               int64_t wide, Bits infinity, Bits* out) {
  const Bits nothing = minus_infinity(infinity);
  const Bits* row = logits + blockIdx.y * stride;
  Bits* wide_row = out + blockIdx.y * wide;
  const int64_t head = unaligned_head(wide_row, wide);
  const int64_t packs = (wide - head) / Pack<Bits>::size;
  const int64_t tail = head + packs * Pack<Bits>::size;
  const int64_t thread = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  const int64_t threads = gridDim.x * static_cast<int64_t>(kThreads);
  auto* body = reinterpret_cast<Pack<Bits>*>(wide_row + head);
  const bool aligned_ids =
      head == 0 && reinterpret_cast<uintptr_t>(draft_ids) % sizeof(int4) == 0;
  for (int64_t pack = thread; pack < packs; pack += threads) {
    const int32_t* sources = draft_ids + head + pack * Pack<Bits>::size;
    Pack<Bits> filled;
    // As in practice, where T is a multiple of a pack.
    if (aligned_ids) {
#pragma unroll
      for (int i = 0; i < Pack<Bits>::size; i += 4) {
        const int4 four = __ldg(reinterpret_cast<const int4*>(sources + i));
        filled.bits[i] = widened(row, four.x, nothing);
        filled.bits[i + 1] = widened(row, four.y, nothing);
        filled.bits[i + 2] = widened(row, four.z, nothing);
        filled.bits[i + 3] = widened(row, four.w, nothing);
      }
    } else {
#pragma unroll
      for (int i = 0; i < Pack<Bits>::size; ++i) {
        filled.bits[i] = widened(row, sources[i], nothing);
      }
    }
    body[pack] = filled;
  }
  for (int64_t id = thread; id < head + (wide - tail); id += threads) {
    const int64_t at = id < head ? id : tail + (id - head);
    wide_row[at] = widened(row, draft_ids[at], nothing);
  }
}

}  // namespace vllm_eagle3
