// Converts the tensors of a plan of class sums to problems of the kernels.

#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <vector>

#include "equivariant/linear/equivariant_sums_call.h"
#include "kernels/common/rounding.h"
#include "kernels/cpu/equivariant/class_kernels.h"
#include "support/parallel.h"
#include "support/working_memory.h"

// Conversion of the tensors of a plan to the problems of the kernels.

namespace nsimplex::equivariant {

static_assert(sizeof(kernels::ClassTerm) == 3 * sizeof(int32_t));  // a row of kTerms

inline const int32_t* numbers(const SumsCall& call, PlanTensor which) {
  return call.plan[which].const_data_ptr<int32_t>();
}

/// Entries offsets[s] to offsets[s + 1] - 1 of `rows` are segment s.
struct Segments {
  const int32_t *offsets, *rows;
  int64_t entries;
};

inline Segments segments(const SumsCall& call, PlanTensor offsets, PlanTensor rows) {
  return {numbers(call, offsets), numbers(call, rows), call.plan[rows].size(0)};
}

/// to[s] = sum of from[rows[e]] over the entries of segment s, for all rows of `to`.
template <class From, class To>
void segment_sums(const Segments& segments, const at::Tensor& from, const at::Tensor& to) {
  kernels::SegmentSums<From, To> problem;
  problem.offsets = segments.offsets;
  problem.rows = segments.rows;
  problem.segments = to.size(0);
  problem.entries = segments.entries;
  problem.channels = to.size(1);
  problem.from = from.const_data_ptr<From>();
  problem.to = to.mutable_data_ptr<To>();
  const kernels::SumsPlan plan = kernels::plan_segment_sums(problem);
  const at::Tensor workspace = working_memory(static_cast<int64_t>(plan.workspace_bytes));
  for (int phase = 0; phase < plan.phases; ++phase) {
    parallel_tasks(plan.tasks[phase], [&](int64_t task, int) {
      kernels::run_segment_sums(problem, plan, phase, task, workspace.mutable_data_ptr());
    });
  }
}

/// The sums [groups, d] of the groups of x [m, d], in double.
template <class T>
at::Tensor group_sums(const SumsCall& call, const at::Tensor& x) {
  const at::Tensor tables =
      at::empty({call.plan[kGroupOffsets].size(0) - 1, x.size(1)}, x.options().dtype(at::kDouble));
  segment_sums<T, double>(segments(call, kGroupOffsets, kGroupRows), x, tables);
  return tables;
}

/// Orders of terms: for sums, and for their transpose.
inline constexpr auto by_class = [](const kernels::ClassTerm& a, const kernels::ClassTerm& b) {
  return a.to_class < b.to_class;
};
inline constexpr auto by_lookup = [](const kernels::ClassTerm& a, const kernels::ClassTerm& b) {
  return a.lookup < b.lookup;
};

/// The sizes of the preceding parts in the arrays of all parts.
struct PartPlace {
  int64_t row = 0, lookup = 0, term = 0, sum = 0, weight_class = 0;
  int64_t bias_class = 0;  ///< of the part itself
};

/// Calls visit(part, place) for every part, with its terms in the order of `before`.
template <class Before, class Visit>
void for_each_part(const SumsCall& call, Before&& before, Visit&& visit) {
  const auto* const all_terms = reinterpret_cast<const kernels::ClassTerm*>(numbers(call, kTerms));
  PartPlace place;
  for (const PatternPart& each : unflatten_parts(call.parts)) {
    const auto* const first_term = all_terms + place.term;
    std::vector<kernels::ClassTerm> terms(first_term, first_term + each.terms);
    std::stable_sort(terms.begin(), terms.end(), before);
    kernels::ClassPart part;
    part.rows = each.rows;
    part.classes = static_cast<int64_t>(each.classes.size());
    part.lookups = each.lookups;
    part.terms = each.terms;
    part.term = terms.data();
    part.lookup = numbers(call, kLookups) + place.lookup;
    part.count = call.mean ? numbers(call, kCounts) + place.sum : nullptr;
    place.bias_class = each.bias_class;
    visit(part, static_cast<const PartPlace&>(place));
    place.row += part.rows;
    place.lookup += part.rows * part.lookups;
    place.term += part.terms;
    place.sum += part.rows * part.classes;
    place.weight_class += part.classes;
  }
}

/// Rows begin .. begin + count - 1 of a part.
inline kernels::ClassPart slice(const kernels::ClassPart& part, int64_t begin, int64_t count) {
  kernels::ClassPart own = part;
  own.rows = count;
  own.lookup += begin * part.lookups;
  if (own.count != nullptr) own.count += begin * part.classes;
  return own;
}

/// Calls run(tensor, a number of the kernels' type). Low precision is computed in float32.
template <class Run>
auto in_kernel_type(at::ScalarType type, Run&& run) {
  return type == at::kDouble ? run(double()) : run(float());
}

/// The gradients of all sources from those of look-ups, which arrive block by block. It is the
/// transpose of the look-ups and, at the end, of the groups.
///
/// The look-ups of a source are in ascending order, so that those of a block follow those of
/// earlier blocks. Sums are in double, block after block, so their order depends on the plan only.
template <class T>
class SourceSums {
 public:
  SourceSums(const SumsCall& call, int64_t channels)
      : call_(call),
        channels_(channels),
        offsets_(numbers(call, kSourceOffsets)),
        lookups_(numbers(call, kSourceLookups)),
        next_(offsets_, offsets_ + call.plan[kSourceOffsets].size(0) - 1),
        sums_(at::zeros({std::ssize(next_), channels}, call.values.options().dtype(at::kDouble))) {}

  /// Adds look-ups begin .. begin + count - 1, which are rows 0 .. count - 1 of `grad` [.., d] of
  /// type T.
  void add(const at::Tensor& grad, int64_t begin, int64_t count) {
    std::vector<int32_t> sources, offsets{0}, rows;
    for (int32_t source = 0; source < static_cast<int32_t>(next_.size()); ++source) {
      int32_t& next = next_[source];
      const int32_t end = offsets_[source + 1];
      if (next == end || lookups_[next] >= begin + count) continue;
      for (; next != end && lookups_[next] < begin + count; ++next) {
        rows.push_back(static_cast<int32_t>(lookups_[next] - begin));
      }
      sources.push_back(source);
      offsets.push_back(static_cast<int32_t>(rows.size()));
    }
    const at::Tensor own = at::empty({std::ssize(sources), channels_}, sums_.options());
    segment_sums<T, double>({offsets.data(), rows.data(), std::ssize(rows)}, grad, own);
    add_rows(sources, own);
  }

  /// The gradient [m, d] of the input rows.
  at::Tensor to_rows() const {
    const at::Tensor out = at::empty({call_.plan[kRowOffsets].size(0) - 1, channels_},
                                     sums_.options().dtype(c10::CppTypeToScalarType<T>::value));
    segment_sums<double, T>(segments(call_, kRowOffsets, kRowSources), sums_, out);
    return out;
  }

 private:
  void add_rows(const std::vector<int32_t>& sources, const at::Tensor& rows) {
    constexpr int64_t kTaskRows = 1024;
    const auto* const from = rows.const_data_ptr<double>();
    auto* const to = sums_.mutable_data_ptr<double>();
    const int64_t count = std::ssize(sources);
    parallel_tasks(ceil_div(count, kTaskRows), [&](int64_t task, int) {
      const int64_t end = std::min(count, (task + 1) * kTaskRows);
      for (int64_t i = task * kTaskRows; i < end; ++i) {
        for (int64_t c = 0; c < channels_; ++c) {
          to[sources[i] * channels_ + c] += from[i * channels_ + c];
        }
      }
    });
  }

  SumsCall call_;
  int64_t channels_;
  const int32_t *offsets_, *lookups_;
  std::vector<int32_t> next_;  // per source, its first look-up in a later block
  at::Tensor sums_;            // [sources, d]
};

}  // namespace nsimplex::equivariant
