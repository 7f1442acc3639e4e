#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/equivariant/layout.h"
#include "kernels/cpu/equivariant/tuple_attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/equivariant/pair_attention.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/dense/exp2-inl.h"
#include "kernels/cpu/equivariant/pair_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {

constexpr int kRows = 4;  // rows of a side that share what is loaded of the other

/// One pass over a task: rows of one side against panels of the other.
template <class T>
class PairPass {
 public:
  PairPass(const PairAttention<T>& problem, TupleSide side, bool backward, void* scratch)
      : problem_(problem), side_(side), backward_(backward) {
    T* at = static_cast<T*>(scratch);
    const auto take = [&](int64_t count) {
      T* const own = at;
      at += count;
      return own;
    };
    const int64_t width = problem.query.width, wide = problem.value.width + 1;
    first_ = {take(problem.heads * width * kPairChunk), width};
    second_ = {take(problem.heads * wide * kPairChunk), wide};
    shifts_ = take(problem.heads * kPairChunk);
    weights_ = take(kRows * kPairChunk);
    factors_ = take(kRows * kPairChunk);
    keep_ = take(kRows * kPairChunk);
    own_first_ = take(kRows * width);
    own_second_ = take(kRows * wide);
    nodes_ = reinterpret_cast<int32_t*>(at);
  }

  void run(const GroupTask& task) {
    const TupleRelation& relation = problem_.relation;
    const bool by_query = side_ == TupleSide::queries;
    const int32_t* const row_offsets = by_query ? relation.query_offsets : relation.key_offsets;
    const int32_t* const other_offsets = by_query ? relation.key_offsets : relation.query_offsets;
    const int32_t* const rows = by_query ? relation.queries : relation.keys;
    const int32_t* const others = by_query ? relation.keys : relation.queries;
    for (int64_t g = task.group_begin; g < task.group_end; ++g) {
      if (relation.key_offsets[g + 1] - relation.key_offsets[g] > problem_.largest_group) continue;
      const int64_t count = row_offsets[g + 1] - row_offsets[g];
      const int64_t begin = task.row_begin;
      const int64_t end = task.row_end > 0 ? task.row_end : count;
      if (begin >= end) continue;
      for (int64_t o = other_offsets[g]; o < other_offsets[g + 1]; o += kPairChunk) {
        const int64_t columns = std::min<int64_t>(kPairChunk, other_offsets[g + 1] - o);
        for (int64_t h = 0; h < problem_.heads; ++h) pack(others + o, columns, h);
        pack_nodes(others + o, columns);
        const int32_t* const own = rows + row_offsets[g];
        int64_t row = begin;
        for (; row + kRows <= end; row += kRows) block<kRows>(own + row, columns);
        for (; row < end; ++row) block<1>(own + row, columns);
      }
    }
  }

 private:
  HeadRows<T> grad() const {
    const int64_t wide = problem_.value.width + 1;
    return {problem_.grad, problem_.heads * wide, wide};
  }

  // The other side's rows, channel by channel; the value gets a channel of ones.
  void pack(const int32_t* rows, int64_t columns, int64_t head) {
    const Panel<T> first = of_head(first_, head), second = of_head(second_, head);
    if (side_ == TupleSide::queries) {
      pack(problem_.key, rows, columns, head, first);
      pack(problem_.value, rows, columns, head, second);
      T* const ones = second.x + problem_.value.width * kPairChunk;
      std::fill(ones, ones + columns, T{1});
      std::fill(ones + columns, ones + whole_vectors<T>(columns), T{0});
      return;
    }
    pack(problem_.query, rows, columns, head, first);
    pack(grad(), rows, columns, head, second);
    if (problem_.weight == PairWeight::product) return;
    T* const shifts = shifts_ + head * kPairChunk;
    for (int64_t j = 0; j < columns; ++j) {
      shifts[j] = problem_.shift[rows[j] * problem_.heads + head];
    }
  }

  static Panel<T> of_head(const Panel<T>& all, int64_t head) {
    return {all.x + head * all.channels * kPairChunk, all.channels};
  }

  // The other side's nodes that are compared with a row's, block by block.
  void pack_nodes(const int32_t* rows, int64_t columns) {
    if (problem_.key_only == 0 || problem_.query_only == 0) return;
    const bool by_query = side_ == TupleSide::queries;
    const auto nodes = by_query ? problem_.key_nodes : problem_.query_nodes;
    const int64_t blocks = by_query ? problem_.key_only : problem_.query_only;
    for (int64_t b = 0; b < blocks; ++b) {
      for (int64_t j = 0; j < columns; ++j) nodes_[b * kPairChunk + j] = nodes[b][rows[j]];
    }
  }

  static void pack(const HeadRows<T>& from, const int32_t* rows, int64_t columns, int64_t head,
                   const Panel<T>& to) {
    const int64_t padded = whole_vectors<T>(columns);
    for (int64_t j = 0; j < columns; ++j) {
      const T* const row = from.row(rows[j], head);
      for (int64_t c = 0; c < from.width; ++c) to.x[c * kPairChunk + j] = row[c];
    }
    for (int64_t c = 0; c < from.width; ++c) {
      std::fill(to.x + c * kPairChunk + columns, to.x + c * kPairChunk + padded, T{0});
    }
  }

  // The row's own numbers, side by side with those of its neighbours.
  void take_own(int64_t row, int64_t head, int r) {
    const int64_t width = problem_.query.width, wide = problem_.value.width + 1;
    const bool by_query = side_ == TupleSide::queries;
    const T* const first = (by_query ? problem_.query : problem_.key).row(row, head);
    std::copy(first, first + width, own_first_ + r * width);
    if (!backward_) return;
    T* const own = own_second_ + r * wide;
    if (by_query) {
      const T* const g = grad().row(row, head);
      std::copy(g, g + wide, own);
    } else {
      const T* const v = problem_.value.row(row, head);
      std::copy(v, v + wide - 1, own);
      own[wide - 1] = 1;
    }
  }

  // keep[j]: 1 where the row and column j may meet, 0 where they may not.
  void find_kept(int64_t row, int64_t columns, T* keep) {
    const bool by_query = side_ == TupleSide::queries;
    const int64_t own_blocks = by_query ? problem_.query_only : problem_.key_only;
    const int64_t other_blocks = by_query ? problem_.key_only : problem_.query_only;
    const auto own = by_query ? problem_.query_nodes : problem_.key_nodes;
    std::fill(keep, keep + columns, T{1});
    for (int64_t b = 0; b < other_blocks; ++b) {
      const int32_t* const nodes = nodes_ + b * kPairChunk;
      for (int64_t a = 0; a < own_blocks; ++a) {
        const int32_t node = own[a][row];
        for (int64_t j = 0; j < columns; ++j) keep[j] = nodes[j] == node ? T{0} : keep[j];
      }
    }
  }

  // Rows against all columns that are packed.
  template <int kCount>
  void block(const int32_t* rows, int64_t columns) {
    const bool some_left_out = problem_.key_only > 0 && problem_.query_only > 0;
    const int64_t padded = whole_vectors<T>(columns);
    for (int r = 0; r < kCount; ++r) {
      T* const keep = keep_ + r * kPairChunk;
      if (some_left_out) {
        find_kept(rows[r], columns, keep);
      } else {
        std::fill(keep, keep + columns, T{1});
      }
      std::fill(keep + columns, keep + padded, T{0});
    }
    for (int64_t h = 0; h < problem_.heads; ++h) {
      const Panel<T> first = of_head(first_, h), second = of_head(second_, h);
      for (int r = 0; r < kCount; ++r) take_own(rows[r], h, r);
      project_rows<kCount>(own_first_, first.channels, first, padded, weights_);
      for (int r = 0; r < kCount; ++r) {
        T* const weight = weights_ + r * kPairChunk;
        const T* const keep = keep_ + r * kPairChunk;
        if (problem_.weight == PairWeight::softmax) {
          exponentials(rows[r], h, columns, padded, some_left_out ? keep : nullptr, weight);
        } else {
          for (int64_t j = 0; j < padded; ++j) weight[j] *= keep[j];
        }
      }
      if (backward_) {
        gradients<kCount>(rows, padded, h, first, second);
      } else {
        add<kCount>(problem_.sums, second.channels, rows, h, weights_, second, padded, 1);
      }
    }
  }

  // Scores to weights. Forward, the row's shift is a running maximum that its sums follow.
  void exponentials(int64_t row, int64_t head, int64_t columns, int64_t padded, const T* keep,
                    T* weight) {
    constexpr T kNone = -std::numeric_limits<T>::infinity();
    if (keep != nullptr) {
      for (int64_t j = 0; j < columns; ++j) weight[j] = keep[j] == 0 ? kNone : weight[j];
    }
    const int64_t state = row * problem_.heads + head;
    if (side_ == TupleSide::keys) {
      const T* const shifts = shifts_ + head * kPairChunk;
      for (int64_t j = 0; j < columns; ++j) weight[j] -= shifts[j];
    } else {
      const T shift = backward_ ? problem_.shift[state] : raised(state, weight, columns);
      for (int64_t j = 0; j < columns; ++j) weight[j] -= shift;
    }
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t j = 0; j < padded; j += lanes) {
      hn::StoreU(dense::HWY_NAMESPACE::exp2(hn::LoadU(d, weight + j)), d, weight + j);
    }
    std::fill(weight + columns, weight + padded, T{0});
  }

  T raised(int64_t state, const T* scores, int64_t columns) {
    T most = problem_.shift[state];
    bool finite = true;
    for (int64_t j = 0; j < columns; ++j) {
      most = std::max(most, scores[j]);
      finite &= scores[j] == scores[j];
    }
    // Nothing may be met, and there is no NaN that must come out: weights of 0.
    if (std::isinf(most) && most < 0) return finite ? T{0} : most;
    T& shift = problem_.shift[state];
    if (most > shift) {
      const double factor = std::exp2(static_cast<double>(shift) - static_cast<double>(most));
      const int64_t wide = problem_.value.width + 1;
      double* const sums = problem_.sums + state * wide;
      for (int64_t c = 0; c < wide; ++c) sums[c] *= factor;
      shift = most;
    }
    return shift;
  }

  template <int kCount>
  void add(double* to, int64_t width, const int32_t* rows, int64_t head, const T* weights,
           Panel<T> panel, int64_t padded, double factor) {
    double* places[kCount];
    for (int r = 0; r < kCount; ++r) places[r] = to + (rows[r] * problem_.heads + head) * width;
    panel.channels = width;
    reduce_rows<kCount>(weights, panel, padded, factor, places);
  }

  template <int kCount>
  void gradients(const int32_t* rows, int64_t padded, int64_t head, const Panel<T>& first,
                 const Panel<T>& second) {
    const bool softmax = problem_.weight == PairWeight::softmax;
    const bool by_query = side_ == TupleSide::queries;
    if (!by_query) {
      add<kCount>(problem_.grad_value, problem_.value.width, rows, head, weights_, second, padded,
                  1);
    }
    // The gradient of a score: that of its weight, times the weight of a softmax.
    project_rows<kCount>(own_second_, second.channels, second, padded, factors_);
    const T* const times = softmax ? weights_ : keep_;
    for (int r = 0; r < kCount; ++r) {
      T* const slope = factors_ + r * kPairChunk;
      const T* const time = times + r * kPairChunk;
      for (int64_t j = 0; j < padded; ++j) slope[j] *= time[j];
    }
    // d 2^(q . k) = ln 2 2^(q . k), the base being in the query.
    const double factor = softmax ? 0.69314718055994530942 : 1;
    add<kCount>(by_query ? problem_.grad_query : problem_.grad_key, first.channels, rows, head,
                factors_, first, padded, factor);
  }

  const PairAttention<T>& problem_;
  TupleSide side_;
  bool backward_;
  Panel<T> first_, second_;  // of all heads; scores are products with the first
  T *weights_, *factors_, *shifts_, *keep_, *own_first_, *own_second_;
  int32_t* nodes_;
};

template <class T>
void forward(const PairAttention<T>& problem, const GroupTask& task, void* scratch) {
  PairPass<T>(problem, TupleSide::queries, /*backward=*/false, scratch).run(task);
}
template <class T>
void backward(const PairAttention<T>& problem, TupleSide side, const GroupTask& task,
              void* scratch) {
  PairPass<T>(problem, side, /*backward=*/true, scratch).run(task);
}

void pairs_forward_f32(const PairAttention<float>& problem, const GroupTask& task, void* scratch) {
  forward(problem, task, scratch);
}
void pairs_forward_f64(const PairAttention<double>& problem, const GroupTask& task, void* scratch) {
  forward(problem, task, scratch);
}
void pairs_backward_f32(const PairAttention<float>& problem, TupleSide side, const GroupTask& task,
                        void* scratch) {
  backward(problem, side, task, scratch);
}
void pairs_backward_f64(const PairAttention<double>& problem, TupleSide side, const GroupTask& task,
                        void* scratch) {
  backward(problem, side, task, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::equivariant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace equivariant {
HWY_EXPORT(pairs_forward_f32);
HWY_EXPORT(pairs_forward_f64);
HWY_EXPORT(pairs_backward_f32);
HWY_EXPORT(pairs_backward_f64);
}  // namespace equivariant

template <class T>
size_t pair_scratch_bytes(const PairAttention<T>& problem) {
  const int64_t width = problem.query.width, wide = problem.value.width + 1;
  constexpr int64_t kOwnRows = 4, kBuffers = 3;
  const int64_t count =
      (problem.heads * (width + wide + 1) + kBuffers * kOwnRows) * equivariant::kPairChunk +
      kOwnRows * (width + wide);
  return static_cast<size_t>(count) * sizeof(T) +
         kMaxTupleBlocks * equivariant::kPairChunk * sizeof(int32_t);
}
template size_t pair_scratch_bytes(const PairAttention<float>&);
template size_t pair_scratch_bytes(const PairAttention<double>&);

void run_pairs_forward(const PairAttention<float>& problem, const GroupTask& task, void* scratch) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(pairs_forward_f32)(problem, task, scratch);
}
void run_pairs_forward(const PairAttention<double>& problem, const GroupTask& task, void* scratch) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(pairs_forward_f64)(problem, task, scratch);
}
void run_pairs_backward(const PairAttention<float>& problem, TupleSide side, const GroupTask& task,
                        void* scratch) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(pairs_backward_f32)(problem, side, task, scratch);
}
void run_pairs_backward(const PairAttention<double>& problem, TupleSide side, const GroupTask& task,
                        void* scratch) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(pairs_backward_f64)(problem, side, task, scratch);
}

}  // namespace nsimplex::kernels
#endif
