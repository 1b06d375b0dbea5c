// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
//
// The inner loops of the CPU, compiled once for each instruction set.

#pragma once

#include <cstdint>

namespace vllm_eagle3 {

// The greatest order key of `count` logits; `count` is positive.
int16_t greatest_key(const uint16_t* logits, int64_t count, uint16_t infinity);
int32_t greatest_key(const uint32_t* logits, int64_t count, uint32_t infinity);

}  // namespace vllm_eagle3
