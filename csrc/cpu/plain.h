// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
//
// Loops that the compiler makes vector code of, for whatever instructions the function
// may use that they are inlined into.

#pragma once

#include "loops.h"

namespace vllm_eagle3::plain {

// Target ids that are filled before draft logits are put among them: with an
// increasing map, the first level of the cache still has them then.
constexpr int64_t kFilledAtOnce = 4 * 1024;

template <class Bits>
DRAFT_LOGITS_INLINE Key<Bits> greatest_key(const Bits* logits, int64_t count,
                                           Bits infinity) {
  Key<Bits> result = kLeastKey<Bits>;
  for (int64_t i = 0; i < count; ++i) {
    const Key<Bits> key = order_key(logits[i], infinity);
    result = key > result ? key : result;
  }
  return result;
}

// Where every target id has a draft id, each is written once, from its draft id. Else
// filling the row and then writing the draft's ids is cheaper.
template <class Bits>
DRAFT_LOGITS_INLINE void widen_row(const Bits* logits, const Map& map, Bits infinity,
                                   Bits* out) {
  const Bits nothing = minus_infinity(infinity);
  if (map.width == map.wide) {
    for (int64_t id = 0; id < map.wide; ++id) {
      out[id] = widened(logits, map.draft_ids[id], nothing);
    }
    return;
  }
  const int64_t* target_ids = map.target_ids;
  int64_t id = 0;
  for (int64_t begin = 0; begin < map.wide; begin += kFilledAtOnce) {
    const int64_t left = map.wide - begin;
    const int64_t end = begin + (left < kFilledAtOnce ? left : kFilledAtOnce);
    for (int64_t place = begin; place < end; ++place) {
      out[place] = nothing;
    }
    // Whatever the order of the map: an id is written once its place has been filled.
    for (; id < map.width && target_ids[id] < end; ++id) {
      out[target_ids[id]] = logits[id];
    }
  }
}

}  // namespace vllm_eagle3::plain
