// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
//
// The inner loops of the CPU, in a version for each set of instructions.

#pragma once

#include <cstdint>
#include <vector>

#include "../draft_logits.h"

namespace vllm_eagle3 {

// So many target ids in a row, whose draft ids follow one another: draft id `first`
// stands at the lowest bit of `present` that is set, the next at the next.
struct Run {
  static constexpr int64_t kTargetIds = 32;
  uint32_t present;
  int32_t first;
};

// What a row of logits is widened by.
struct Map {
  const int64_t* target_ids;
  int64_t width;
  const int32_t* draft_ids;
  int64_t wide;
  // Of all target ids, or none: without instructions that take them, for a few rows, and
  // for a map that does not increase.
  std::vector<Run> runs;
};

template <class Bits>
struct Loops {
  // The greatest order key of `count` logits; `count` is positive.
  Key<Bits> (*greatest_key)(const Bits* logits, int64_t count, Bits infinity);
  void (*widen_row)(const Bits* logits, const Map& map, Bits infinity, Bits* out);
};

// For the instructions that are in use.
template <class Bits>
Loops<Bits> loops();
std::vector<Run> find_runs(const int32_t* draft_ids, int64_t wide);

}  // namespace vllm_eagle3
