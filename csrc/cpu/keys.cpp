// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project

#include "keys.h"

#include "../draft_logits.h"

// The compiler makes a version for each of these, and the loader picks one when the
// library is loaded.
#if defined(__x86_64__) && defined(__ELF__) && \
    (!defined(__clang__) || __clang_major__ >= 14)
#define FOR_EACH_INSTRUCTION_SET \
  __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define FOR_EACH_INSTRUCTION_SET
#endif

namespace vllm_eagle3 {

namespace {

template <class Bits>
DRAFT_LOGITS_INLINE Key<Bits> greatest(const Bits* logits, int64_t count,
                                       Bits infinity) {
  Key<Bits> result = kLeastKey<Bits>;
  for (int64_t i = 0; i < count; ++i) {
    const Key<Bits> key = order_key(logits[i], infinity);
    result = key > result ? key : result;
  }
  return result;
}

}  // namespace

FOR_EACH_INSTRUCTION_SET
int16_t greatest_key(const uint16_t* logits, int64_t count, uint16_t infinity) {
  return greatest(logits, count, infinity);
}

FOR_EACH_INSTRUCTION_SET
int32_t greatest_key(const uint32_t* logits, int64_t count, uint32_t infinity) {
  return greatest(logits, count, infinity);
}

}  // namespace vllm_eagle3
