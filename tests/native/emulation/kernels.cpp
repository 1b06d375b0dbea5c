// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
//
// The CUDA kernels on a CPU, launched as csrc/cuda/ops.cu launches them, for ctypes.

#include "../../../csrc/cuda/kernels.cuh"

using namespace vllm_eagle3;

template <class Bits>
void argmax(const void* logits, int64_t tokens, int64_t width, int64_t stride,
            Bits infinity, const int64_t* target_ids, int64_t segments,
            int64_t* result) {
  const auto* rows = static_cast<const Bits*>(logits);
  std::vector<uint64_t> space(segments > 1 ? tokens * segments : 0);
  uint64_t* partial = segments > 1 ? space.data() : nullptr;
  const dim3 grid{static_cast<unsigned>(segments), static_cast<unsigned>(tokens)};
  emulation::launch(grid, kThreads, [=] {
    argmax_segments(rows, stride, width, segment_length<Bits>(width, segments),
                    infinity, target_ids, partial, result);
  });
  if (partial != nullptr) {
    emulation::launch({static_cast<unsigned>(tokens)}, kWarp, [=] {
      argmax_of_segments(partial, segments, target_ids, result);
    });
  }
}

template <class Bits>
void widen(const void* logits, int64_t tokens, int64_t stride,
           const int32_t* draft_ids, int64_t wide, Bits infinity, void* out) {
  const auto* rows = static_cast<const Bits*>(logits);
  const dim3 grid{static_cast<unsigned>(blocks_for_wide_row<Bits>(wide)),
                  static_cast<unsigned>(tokens)};
  emulation::launch(grid, kThreads, [=] {
    widen_rows(rows, stride, draft_ids, wide, infinity, static_cast<Bits*>(out));
  });
}

// `infinity` has the bits of +infinity, and `bytes` is the size of a logit.
extern "C" void emulated_argmax(int bytes, uint32_t infinity, const void* logits,
                                int64_t tokens, int64_t width, int64_t stride,
                                const int64_t* target_ids, int64_t segments,
                                int64_t* result) {
  if (bytes == 2) {
    argmax<uint16_t>(logits, tokens, width, stride, static_cast<uint16_t>(infinity),
                     target_ids, segments, result);
  } else {
    argmax<uint32_t>(logits, tokens, width, stride, infinity, target_ids, segments,
                     result);
  }
}

extern "C" void emulated_widen(int bytes, uint32_t infinity, const void* logits,
                               int64_t tokens, int64_t stride,
                               const int32_t* draft_ids, int64_t wide, void* out) {
  if (bytes == 2) {
    widen<uint16_t>(logits, tokens, stride, draft_ids, wide,
                    static_cast<uint16_t>(infinity), out);
  } else {
    widen<uint32_t>(logits, tokens, stride, draft_ids, wide, infinity, out);
  }
}
