// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project

#include "loops.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "plain.h"
#if defined(__x86_64__)
#include "expand.h"
#endif

namespace vllm_eagle3 {

namespace {

// In rising order, by torch's names for them.
constexpr const char* kInstructions[] = {"default", "avx2", "avx512"};
enum Level : int { kDefault, kAvx2, kAvx512 };

struct Default {
  template <class Bits>
  static Key<Bits> greatest_key(const Bits* logits, int64_t count, Bits infinity) {
    return plain::greatest_key(logits, count, infinity);
  }
  template <class Bits>
  static void widen_row(const Bits* logits, const Map& map, Bits infinity, Bits* out) {
    plain::widen_row(logits, map, infinity, out);
  }
};

#if defined(__x86_64__)
struct Avx2 {
  template <class Bits>
  __attribute__((target("avx2"))) static Key<Bits> greatest_key(const Bits* logits,
                                                                int64_t count,
                                                                Bits infinity) {
    return plain::greatest_key(logits, count, infinity);
  }
  template <class Bits>
  __attribute__((target("avx2"))) static void widen_row(const Bits* logits,
                                                        const Map& map, Bits infinity,
                                                        Bits* out) {
    plain::widen_row(logits, map, infinity, out);
  }
};

struct Avx512 {
  template <class Bits>
  AVX512_FUNCTION static Key<Bits> greatest_key(const Bits* logits, int64_t count,
                                                Bits infinity) {
    return plain::greatest_key(logits, count, infinity);
  }
  template <class Bits>
  AVX512_FUNCTION static void widen_row(const Bits* logits, const Map& map,
                                        Bits infinity, Bits* out) {
    if (map.runs.empty()) {
      return plain::widen_row(logits, map, infinity, out);
    }
    avx512::widen_row(logits, map, infinity, out);
  }
};
#endif

Level level_of_processor() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2")) {
    return kDefault;
  }
  const bool avx512 = __builtin_cpu_supports("bmi") &&
                      __builtin_cpu_supports("popcnt") &&
                      __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512vbmi2");
  return avx512 ? kAvx512 : kAvx2;
#else
  return kDefault;
#endif
}

// What the processor has, or less where `at_most` names less.
Level level_up_to(const char* at_most) {
  const Level level = level_of_processor();
  for (int lower = kDefault; at_most != nullptr && lower < level; ++lower) {
    if (std::strcmp(at_most, kInstructions[lower]) == 0) {
      return static_cast<Level>(lower);
    }
  }
  return level;
}

// Who limits torch by its variable limits these loops too.
std::atomic<Level> level_in_use{level_up_to(std::getenv("ATEN_CPU_CAPABILITY"))};

template <class Instructions, class Bits>
constexpr Loops<Bits> loops_for() {
  return {&Instructions::template greatest_key<Bits>,
          &Instructions::template widen_row<Bits>};
}

}  // namespace

template <class Bits>
Loops<Bits> loops() {
#if defined(__x86_64__)
  switch (level_in_use.load(std::memory_order_relaxed)) {
    case kAvx512:
      return loops_for<Avx512, Bits>();
    case kAvx2:
      return loops_for<Avx2, Bits>();
    case kDefault:
      break;
  }
#endif
  return loops_for<Default, Bits>();
}

template Loops<uint16_t> loops();
template Loops<uint32_t> loops();

std::vector<Run> find_runs(const int32_t* draft_ids, int64_t wide) {
#if defined(__x86_64__)
  if (level_in_use.load(std::memory_order_relaxed) == kAvx512) {
    return avx512::find_runs(draft_ids, wide);
  }
#endif
  return {};
}

}  // namespace vllm_eagle3

// The instructions in use, after limiting them to `at_most` where that is not null and
// names some; not for use beside running operators.
extern "C" __attribute__((visibility("default"))) const char* vllm_eagle3_instructions(
    const char* at_most) {
  using namespace vllm_eagle3;
  if (at_most != nullptr) {
    level_in_use = level_up_to(at_most);
  }
  return kInstructions[level_in_use];
}
