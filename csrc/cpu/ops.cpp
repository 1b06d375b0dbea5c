// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
//
// The schemas of both operators, and what they do on a CPU.

#include "../ops.h"

#include <algorithm>
#include <vector>

#include "loops.h"

namespace vllm_eagle3 {

namespace {

// Logits whose greatest key is found in one go. Small enough to look through again
// for the winner's place, large enough that the rest does not count.
constexpr int64_t kBlock = 1024;
// What one thread takes at least: below, waking another costs more than it saves.
constexpr int64_t kBytesPerThread = 32 * 1024;
// Finding a map's runs takes as long as they save on so many rows.
constexpr int64_t kRowsWorthRuns = 3;
// A long row is shared among threads in pieces of so many logits.
constexpr int64_t kSegment = 32 * kBlock;

template <class Bits>
uint64_t best_candidate(const Loops<Bits>& loops, const Bits* row, int64_t begin,
                        int64_t end, Bits infinity) {
  Key<Bits> best = kLeastKey<Bits>;
  int64_t best_begin = begin;
  for (int64_t block = begin; block < end; block += kBlock) {
    const int64_t count = std::min(kBlock, end - block);
    const Key<Bits> key = loops.greatest_key(row + block, count, infinity);
    if (key > best) {
      best = key;
      best_begin = block;
    }
  }
  int64_t winner = best_begin;
  while (order_key(row[winner], infinity) != best) {
    ++winner;
  }
  return candidate(best, static_cast<uint32_t>(winner));
}

template <class Bits>
void argmax_rows(const Rows& rows, Bits infinity, const int64_t* target_ids,
                 int64_t* result) {
  const Bits* logits = rows.data<Bits>();
  const Loops<Bits> loops = vllm_eagle3::loops<Bits>();
  const int64_t segments = (rows.width + kSegment - 1) / kSegment;
  const int64_t segment_bytes = std::min(rows.width, kSegment) * sizeof(Bits);
  const int64_t grain = std::max<int64_t>(1, kBytesPerThread / segment_bytes);
  std::vector<uint64_t> found(rows.tokens * segments);
  torch::stable::parallel_for(
      0, rows.tokens * segments, grain, [&](int64_t first, int64_t last) {
        for (int64_t piece = first; piece < last; ++piece) {
          const int64_t token = piece / segments;
          const int64_t begin = piece % segments * kSegment;
          const int64_t end = std::min(begin + kSegment, rows.width);
          found[piece] =
              best_candidate(loops, logits + token * rows.stride, begin, end, infinity);
        }
      });
  for (int64_t token = 0; token < rows.tokens; ++token) {
    const uint64_t* pieces = found.data() + token * segments;
    const uint64_t best = *std::max_element(pieces, pieces + segments);
    result[token] = to_target(candidate_draft_id(best), target_ids);
  }
}

}  // namespace

Tensor draft_argmax_to_target(const Tensor& logits,
                              const std::optional<Tensor>& target_ids) {
  const Rows rows(logits);
  STD_TORCH_CHECK(rows.width > 0, "logits have no columns to take the greatest of");
  const int64_t* ids = target_ids ? target_ids_of(rows, *target_ids) : nullptr;
  Tensor result = torch::stable::new_empty(logits, {rows.tokens}, ScalarType::Long);
  with_format(logits.scalar_type(), [&](auto infinity) {
    argmax_rows(rows, infinity, ids, result.mutable_data_ptr<int64_t>());
  });
  return result;
}

Tensor widen_draft_logits(const Tensor& logits, const Tensor& target_ids,
                          const Tensor& draft_ids) {
  const Rows rows(logits);
  const int64_t* ids = target_ids_of(rows, target_ids);
  check_ids(draft_ids, ScalarType::Int, logits, "draft_ids");
  const int64_t wide = draft_ids.numel();
  const auto* sources = static_cast<const int32_t*>(draft_ids.const_data_ptr());
  const Map map{ids, rows.width, sources, wide, {}};
  Tensor result = torch::stable::new_empty(logits, {rows.tokens, wide});
  with_format(logits.scalar_type(), [&](auto infinity) {
    using Bits = decltype(infinity);
    const Loops<Bits> loops = vllm_eagle3::loops<Bits>();
    Bits* out = static_cast<Bits*>(result.mutable_data_ptr());
    const int64_t row_bytes = std::max<int64_t>(1, wide * sizeof(Bits));
    const int64_t grain = std::max<int64_t>(1, kBytesPerThread / row_bytes);
    torch::stable::parallel_for(
        0, rows.tokens, grain, [&](int64_t first, int64_t last) {
          // Each thread for itself: waiting for one of them would take as long.
          Map own = map;
          if (last - first >= kRowsWorthRuns) {
            own.runs = find_runs(sources, wide);
          }
          for (int64_t token = first; token < last; ++token) {
            loops.widen_row(rows.data<Bits>() + token * rows.stride, own, infinity,
                            out + token * wide);
          }
        });
  });
  return result;
}

}  // namespace vllm_eagle3

STABLE_TORCH_LIBRARY(vllm_eagle3, m) {
  m.def("draft_argmax_to_target(Tensor logits, Tensor? target_ids) -> Tensor");
  m.def(
      "widen_draft_logits(Tensor logits, Tensor target_ids, Tensor draft_ids) "
      "-> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(vllm_eagle3, CPU, m) {
  m.impl("draft_argmax_to_target", TORCH_BOX(&vllm_eagle3::draft_argmax_to_target));
  m.impl("widen_draft_logits", TORCH_BOX(&vllm_eagle3::widen_draft_logits));
}
