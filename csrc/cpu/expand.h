// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
//
// Widening with AVX-512's expansion: it takes logits that lie densely, and spreads them
// over the places whose bits are set. So each target id is written once, 64 bytes at a
// time, and each logit read once.

#pragma once

#include <immintrin.h>

#include "loops.h"

// Ice Lake and Zen 4, and what came after: the first with expansion of 16-bit elements.
#define AVX512_FUNCTION \
  __attribute__((       \
      target("avx2,bmi,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")))

namespace vllm_eagle3::avx512 {

// The lowest `count` bits, at most 32.
AVX512_FUNCTION inline uint32_t lowest_bits(int64_t count) {
  return static_cast<uint32_t>((uint64_t{1} << count) - 1);
}

// Whether draft ids (16 target ids' in `ids`) count up from `first` where there are any.
AVX512_FUNCTION inline bool count_up(__m512i ids, __mmask16 present, int32_t first) {
  const __m512i steps =
      _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i counted = _mm512_add_epi32(_mm512_set1_epi32(first),
                                           _mm512_maskz_expand_epi32(present, steps));
  return _mm512_mask_cmpneq_epi32_mask(present, ids, counted) == 0;
}

// The run of the next `count` target ids; `increasing` is cleared if they are none.
AVX512_FUNCTION inline Run run_of(const int32_t* draft_ids, int64_t count,
                                  bool& increasing) {
  const __m512i none = _mm512_set1_epi32(-1);
  const uint32_t counted = lowest_bits(count);
  const auto low_half = static_cast<__mmask16>(counted);
  const auto high_half = static_cast<__mmask16>(counted >> 16);
  const __m512i low = _mm512_mask_loadu_epi32(none, low_half, draft_ids);
  const __m512i high = _mm512_mask_loadu_epi32(none, high_half, draft_ids + 16);
  const auto in_low = static_cast<__mmask16>(~_mm512_movepi32_mask(low));
  const auto in_high = static_cast<__mmask16>(~_mm512_movepi32_mask(high));
  const uint32_t present = in_low | static_cast<uint32_t>(in_high) << 16;
  const int32_t first = present == 0 ? 0 : draft_ids[__builtin_ctz(present)];
  increasing &= count_up(low, in_low, first) &&
                count_up(high, in_high, first + __builtin_popcount(in_low));
  return {present, first};
}

AVX512_FUNCTION inline std::vector<Run> find_runs(const int32_t* draft_ids,
                                                  int64_t wide) {
  std::vector<Run> runs((wide + Run::kTargetIds - 1) / Run::kTargetIds);
  bool increasing = true;
  for (int64_t begin = 0; begin < wide && increasing; begin += Run::kTargetIds) {
    const int64_t left = wide - begin;
    const int64_t count = left < Run::kTargetIds ? left : Run::kTargetIds;
    runs[begin / Run::kTargetIds] = run_of(draft_ids + begin, count, increasing);
  }
  if (!increasing) {
    runs.clear();
  }
  return runs;
}

// The first `count` target ids of a run. No logit is read but those that are present.
AVX512_FUNCTION inline void expand(const uint16_t* logits, Run run, uint16_t nothing,
                                   uint16_t* out, int64_t count) {
  const __m512i filled = _mm512_mask_expandloadu_epi16(
      _mm512_set1_epi16(static_cast<int16_t>(nothing)), run.present,
      logits + run.first);
  _mm512_mask_storeu_epi16(out, lowest_bits(count), filled);
}

AVX512_FUNCTION inline void expand(const uint32_t* logits, Run run, uint32_t nothing,
                                   uint32_t* out, int64_t count) {
  const __m512i nothings = _mm512_set1_epi32(static_cast<int32_t>(nothing));
  const auto in_low = static_cast<__mmask16>(run.present);
  const auto in_high = static_cast<__mmask16>(run.present >> 16);
  const uint32_t* first = logits + run.first;
  const uint32_t* second = first + __builtin_popcount(in_low);
  const __m512i low = _mm512_mask_expandloadu_epi32(nothings, in_low, first);
  const __m512i high = _mm512_mask_expandloadu_epi32(nothings, in_high, second);
  const uint32_t counted = lowest_bits(count);
  _mm512_mask_storeu_epi32(out, static_cast<__mmask16>(counted), low);
  _mm512_mask_storeu_epi32(out + 16, static_cast<__mmask16>(counted >> 16), high);
}

template <class Bits>
AVX512_FUNCTION inline void widen_row(const Bits* logits, const Map& map, Bits infinity,
                                      Bits* out) {
  const Bits nothing = minus_infinity(infinity);
  const int64_t whole = map.wide / Run::kTargetIds;
  const Run* runs = map.runs.data();
  for (int64_t i = 0; i < whole; ++i) {
    expand(logits, runs[i], nothing, out + i * Run::kTargetIds, Run::kTargetIds);
  }
  if (const int64_t left = map.wide % Run::kTargetIds; left != 0) {
    expand(logits, runs[whole], nothing, out + whole * Run::kTargetIds, left);
  }
}

}  // namespace vllm_eagle3::avx512
