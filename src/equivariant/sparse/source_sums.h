#pragma once

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <vector>

#include "equivariant/sparse/class_parts.h"

namespace nsimplex::equivariant {

/// The gradients of all sources from those of look-ups, which come block by block: the transpose of
/// the look-ups, and in the end of the groups.
///
/// A source's look-ups are known in ascending order, so that those of a block follow those of the
/// blocks before. Sums run in double, block after block: their order depends on the plan alone.
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

  /// Adds look-ups begin .. begin + count - 1, rows 0 .. count - 1 of `grad` [.., d] of type T.
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
    parallel_tasks((count + kTaskRows - 1) / kTaskRows, [&](int64_t task, int) {
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
  std::vector<int32_t> next_;  // of each source, its first look-up of a block to come
  at::Tensor sums_;            // [sources, d]
};

}  // namespace nsimplex::equivariant
