// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
//
// What the operators are given, checked and taken apart once for CPU and CUDA.

#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include <optional>

#include "draft_logits.h"

namespace vllm_eagle3 {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// Logits as rows of bits that lie densely in themselves, `[tokens, D]`.
struct Rows {
  Tensor tensor;
  int64_t tokens;
  int64_t width;
  int64_t stride;

  explicit Rows(const Tensor& logits) : tensor(logits) {
    STD_TORCH_CHECK(logits.dim() == 2, "logits must be [tokens, D], not of ",
                    logits.dim(), " dimensions");
    STD_TORCH_CHECK(logits.size(1) < std::numeric_limits<int32_t>::max(),
                    "logits have ", logits.size(1), " columns, too many for ids");
    tokens = logits.size(0);
    width = logits.size(1);
    if (width > 1 && logits.stride(1) != 1) {
      tensor = torch::stable::contiguous(logits);
    }
    stride = tensor.stride(0);
  }

  template <class Bits>
  const Bits* data() const {
    return static_cast<const Bits*>(tensor.const_data_ptr());
  }
};

inline void check_ids(const Tensor& ids, ScalarType type, const Tensor& logits,
                      const char* name) {
  STD_TORCH_CHECK(ids.dim() == 1 && ids.is_contiguous() && ids.scalar_type() == type,
                  name, " must be contiguous, one-dimensional, and of the right dtype");
  STD_TORCH_CHECK(ids.device() == logits.device(), name,
                  " must be on the device of the logits");
}

inline const int64_t* target_ids_of(const Rows& rows, const Tensor& target_ids) {
  check_ids(target_ids, ScalarType::Long, rows.tensor, "target_ids");
  STD_TORCH_CHECK(target_ids.numel() == rows.width, "target_ids has ",
                  target_ids.numel(), " entries for ", rows.width, " draft ids");
  return static_cast<const int64_t*>(target_ids.const_data_ptr());
}

// Calls `function(bits of +infinity)`, whose type says how wide a logit is.
template <class Function>
void with_format(ScalarType type, const Function& function) {
  switch (type) {
    case ScalarType::Float:
      return function(kInfinityFloat32);
    case ScalarType::BFloat16:
      return function(kInfinityBFloat16);
    case ScalarType::Half:
      return function(kInfinityFloat16);
    default:
      STD_TORCH_CHECK(false, "logits must be float32, bfloat16 or float16");
  }
}

}  // namespace vllm_eagle3
