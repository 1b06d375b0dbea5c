// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
//
// What happens to one logit, for CPU and CUDA alike: its place in the order that
// argmax uses, and its place among the target's ids.
//
// Logits are compared as integers made from their bits. All of float32, bfloat16 and
// float16 are sign and magnitude, so one rule serves them; only the bit pattern of
// infinity differs. Comparing integers is exact, needs no conversion of 16-bit
// floats, and says what torch.argmax says: -0 equals +0, any NaN is the greatest, and
// of equals the first wins.

#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__CUDACC__)
#define DRAFT_LOGITS_INLINE __host__ __device__ __forceinline__
#else
#define DRAFT_LOGITS_INLINE inline __attribute__((always_inline))
#endif

namespace vllm_eagle3 {

// Bit patterns of +infinity.
constexpr uint32_t kInfinityFloat32 = 0x7f800000u;
constexpr uint16_t kInfinityBFloat16 = 0x7f80u;
constexpr uint16_t kInfinityFloat16 = 0x7c00u;

template <class Bits>
using Key = std::make_signed_t<Bits>;

// No logit has the least key. NaN has the greatest.
template <class Bits>
constexpr Key<Bits> kLeastKey = std::numeric_limits<Key<Bits>>::min();
template <class Bits>
constexpr Key<Bits> kGreatestKey = std::numeric_limits<Key<Bits>>::max();

template <class Bits>
DRAFT_LOGITS_INLINE Bits minus_infinity(Bits infinity) {
  return static_cast<Bits>(infinity | static_cast<Bits>(kLeastKey<Bits>));
}

// An integer that is greater for greater logits, equal for equal ones. Without
// branches, so that compilers make vector code of it.
template <class Bits>
DRAFT_LOGITS_INLINE Key<Bits> order_key(Bits bits, Bits infinity) {
  using K = Key<Bits>;
  constexpr K greatest = kGreatestKey<Bits>;
  const K magnitude = static_cast<K>(bits & static_cast<Bits>(greatest));
  const K sign = static_cast<K>(static_cast<K>(bits) >> (sizeof(K) * 8 - 1));
  const K ordered = static_cast<K>((magnitude ^ sign) - sign);
  const K nan = static_cast<K>(-(magnitude > static_cast<K>(infinity)));
  return static_cast<K>((ordered & ~nan) | (greatest & nan));
}

// Key and id in one word, whose maximum is the greatest key, and of equal keys the
// lowest id. Ids are below 2^32.
DRAFT_LOGITS_INLINE uint64_t candidate(int32_t key, uint32_t draft_id) {
  const uint32_t unsigned_key = static_cast<uint32_t>(key) ^ 0x80000000u;
  return static_cast<uint64_t>(unsigned_key) << 32 | (0xffffffffu - draft_id);
}

DRAFT_LOGITS_INLINE uint32_t candidate_draft_id(uint64_t candidate) {
  return 0xffffffffu - static_cast<uint32_t>(candidate);
}

DRAFT_LOGITS_INLINE int64_t to_target(uint32_t draft_id, const int64_t* target_ids) {
  return target_ids == nullptr ? static_cast<int64_t>(draft_id) : target_ids[draft_id];
}

// What stands at a target id: the logit of the draft id that maps there, if any.
template <class Bits>
DRAFT_LOGITS_INLINE Bits widened(const Bits* logits, int32_t draft_id, Bits nothing) {
  return draft_id < 0 ? nothing : logits[draft_id];
}

}  // namespace vllm_eagle3
