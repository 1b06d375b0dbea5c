// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
//
// Both operators on CUDA. Nothing here waits for the device, and nothing depends on
// values, so CUDA graphs can capture it. Schemas are defined with the CPU's operators.

#include "../ops.h"

#include <cuda_runtime.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/macros.h>

#include <algorithm>

#include "kernels.cuh"

namespace vllm_eagle3 {

namespace {

// A block that reads less than this has done more waiting than reading.
constexpr int64_t kBytesPerBlock = 16 * 1024;

cudaStream_t current_stream(const Tensor& tensor) {
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(
      aoti_torch_get_current_cuda_stream(tensor.get_device_index(), &stream));
  return static_cast<cudaStream_t>(stream);
}

int64_t processors() {
  int device = 0;
  int count = 0;
  STD_CUDA_CHECK(cudaGetDevice(&device));
  STD_CUDA_CHECK(
      cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

// Blocks that share a row: enough to occupy the chip, each with enough to read.
int64_t blocks_for_row(int64_t tokens, int64_t row_bytes) {
  const int64_t wanted = divide_up(2 * processors(), tokens);
  return std::max<int64_t>(1, std::min(wanted, divide_up(row_bytes, kBytesPerBlock)));
}

// A grid has at most so many rows.
constexpr int64_t kTokensAtOnce = 65535;

template <class Bits>
void argmax_rows(const Bits* logits, int64_t tokens, const Rows& rows, Bits infinity,
                 const int64_t* ids, uint64_t* partial, int64_t segments,
                 int64_t* result, cudaStream_t stream) {
  const int64_t segment = segment_length<Bits>(rows.width, segments);
  const dim3 grid(segments, tokens);
  argmax_segments<<<grid, kThreads, 0, stream>>>(logits, rows.stride, rows.width,
                                                 segment, infinity, ids, partial,
                                                 result);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  if (partial != nullptr) {
    argmax_of_segments<<<tokens, kWarp, 0, stream>>>(partial, segments, ids, result);
    STD_CUDA_KERNEL_LAUNCH_CHECK();
  }
}

}  // namespace

Tensor draft_argmax_to_target_cuda(const Tensor& logits,
                                   const std::optional<Tensor>& target_ids) {
  const torch::stable::accelerator::DeviceGuard guard(logits.get_device_index());
  const Rows rows(logits);
  STD_TORCH_CHECK(rows.width > 0, "logits have no columns to take the greatest of");
  const int64_t* ids = target_ids ? target_ids_of(rows, *target_ids) : nullptr;
  Tensor result = torch::stable::new_empty(logits, {rows.tokens}, ScalarType::Long);
  if (rows.tokens == 0) {
    return result;
  }
  with_format(logits.scalar_type(), [&](auto infinity) {
    using Bits = decltype(infinity);
    const int64_t segments =
        blocks_for_row(rows.tokens, rows.width * static_cast<int64_t>(sizeof(Bits)));
    const int64_t at_once = std::min(rows.tokens, kTokensAtOnce);
    Tensor space = torch::stable::new_empty(
        logits, {segments > 1 ? at_once * segments : 0}, ScalarType::Long);
    auto* partial =
        segments > 1 ? static_cast<uint64_t*>(space.mutable_data_ptr()) : nullptr;
    for (int64_t first = 0; first < rows.tokens; first += at_once) {
      argmax_rows(rows.data<Bits>() + first * rows.stride,
                  std::min(at_once, rows.tokens - first), rows, infinity, ids, partial,
                  segments, result.mutable_data_ptr<int64_t>() + first,
                  current_stream(logits));
    }
  });
  return result;
}

Tensor widen_draft_logits_cuda(const Tensor& logits, const Tensor& target_ids,
                               const Tensor& draft_ids) {
  const torch::stable::accelerator::DeviceGuard guard(logits.get_device_index());
  const Rows rows(logits);
  target_ids_of(rows, target_ids);
  check_ids(draft_ids, ScalarType::Int, logits, "draft_ids");
  const int64_t wide = draft_ids.numel();
  const auto* sources = static_cast<const int32_t*>(draft_ids.const_data_ptr());
  Tensor result = torch::stable::new_empty(logits, {rows.tokens, wide});
  if (result.numel() == 0) {
    return result;
  }
  with_format(logits.scalar_type(), [&](auto infinity) {
    using Bits = decltype(infinity);
    auto* out = static_cast<Bits*>(result.mutable_data_ptr());
    const int64_t blocks = blocks_for_wide_row<Bits>(wide);
    for (int64_t first = 0; first < rows.tokens; first += kTokensAtOnce) {
      const dim3 grid(blocks, std::min(kTokensAtOnce, rows.tokens - first));
      widen_rows<<<grid, kThreads, 0, current_stream(logits)>>>(
          rows.data<Bits>() + first * rows.stride, rows.stride, sources, wide, infinity,
          out + first * wide);
      STD_CUDA_KERNEL_LAUNCH_CHECK();
    }
  });
  return result;
}

}  // namespace vllm_eagle3

STABLE_TORCH_LIBRARY_IMPL(vllm_eagle3, CUDA, m) {
  m.impl("draft_argmax_to_target",
         TORCH_BOX(&vllm_eagle3::draft_argmax_to_target_cuda));
  m.impl("widen_draft_logits", TORCH_BOX(&vllm_eagle3::widen_draft_logits_cuda));
}
