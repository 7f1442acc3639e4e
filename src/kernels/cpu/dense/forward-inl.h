// Forward pass of the dense kernel, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_FORWARD_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_FORWARD_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_FORWARD_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "kernels/cpu/dense/forward_block-inl.h"
#include "kernels/cpu/dense/forward_output-inl.h"
#include "kernels/cpu/dense/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// One task: a run of items of one key/value head against all their tuples. Rows are gathered into
/// blocks; at the end of a block every row adds (its leading values) o Y to its item.
template <class T>
class ForwardTask {
  using R = Accum<T>;

 public:
  ForwardTask(const DenseForward<T>& problem, const Geometry& geometry, const HeadPack<R>& pack,
              int64_t batch, int64_t head, R* scratch)
      : problem_(problem),
        geometry_(geometry),
        pack_(pack),
        batch_(batch),
        head_(head),
        active_(problem.active_queries(batch)),
        arena_(scratch),
        rows_(problem, geometry, pack, arena_),
        w_(arena_.take(kBlockRows * geometry.value_depth)),
        query_(arena_.take(geometry.depth)),
        key_prefix_(arena_, geometry.inner(), geometry.depth),
        value_prefix_(arena_, geometry.inner(), geometry.value_depth) {}

  /// All tuples of the items, to the output.
  void run(Range items) {
    for (int64_t first = items.begin; first < items.end; first += kChunkItems) {
      const int count = static_cast<int>(std::min<int64_t>(items.end - first, kChunkItems));
      run_chunk(first, count, kEveryKey);
      for (int i = 0; i < count; ++i) {
        write_item(problem_, geometry_, batch_, head_, first + i, rows_.state[i],
                   rows_.total + i * geometry_.value_depth);
      }
    }
  }

  /// One chunk's tuples with inner keys in `keys`, to states and totals for merge_parts().
  void run_part(Range keys, SoftmaxState<R>* states, R* totals) {
    const int count = static_cast<int>(geometry_.items);
    run_chunk(0, count, keys);
    std::copy(rows_.state, rows_.state + count, states);
    std::copy(rows_.total, rows_.total + count * geometry_.value_depth, totals);
  }

 private:
  static constexpr Range kEveryKey{0, std::numeric_limits<int64_t>::max()};

  void run_chunk(int64_t first, int count, Range keys) {
    rows_.start_items(count);
    for (int i = 0; i < count; ++i) {
      const int64_t query = (first + i) / geometry_.group;
      if (query >= active_.begin && query < active_.end) add_item(first + i, i, keys);
    }
    if (rows_.block.rows > 0) finish_block();
  }

  // Appends one row for each leading tuple of an item.
  void add_item(int64_t item, int slot, Range keys) {
    const int64_t query = item / geometry_.group;
    const Visibility& visible = problem_.axes[geometry_.axis[geometry_.inner()]].visible;
    const Range inner = intersect(keys, visible.of(batch_, query));
    if (inner.size() == 0) return;
    const R scale = static_cast<R>(problem_.logit_scale * kLog2E);
    copy_padded(query_, problem_.query.row(batch_, geometry_.query_head(head_, item), query),
                problem_.dim, geometry_.depth);
    scale_row(query_, scale, geometry_.depth);

    TupleWalk walk(problem_, geometry_, batch_, query);
    do {
      const int row = rows_.block.rows++;
      rows_.block.item[row] = slot;
      rows_.block.inner[row] = inner;
      combine_leading(walk, row);
      if (rows_.block.rows == kBlockRows) finish_block();
    } while (walk.next());
  }

  // U = query o leading keys, W = product or sum of the leading values.
  void combine_leading(const TupleWalk& walk, int row) {
    const int leading = geometry_.inner();
    R* const u = rows_.u + row * geometry_.depth;
    if (leading == 0) {
      std::memcpy(u, query_, geometry_.depth * sizeof(R));
      return;
    }
    const int64_t width = geometry_.value_depth;
    for (int p = walk.changed(); p < leading; ++p) {
      R* const to = p + 1 == leading ? u : key_prefix_.level[p];
      multiply_rows(to, p == 0 ? query_ : key_prefix_.level[p - 1],
                    pack_.keys[p] + walk[p] * geometry_.depth, geometry_.depth);
      R* const w = p + 1 == leading ? w_ + row * width : value_prefix_.level[p];
      const R* const value = pack_.values[p] + walk[p] * width;
      if (p == 0) {
        std::memcpy(w, value, width * sizeof(R));
      } else if (problem_.reduce == ValueReduce::product) {
        multiply_rows(w, value_prefix_.level[p - 1], value, width);
      } else {
        add_rows(w, value_prefix_.level[p - 1], value, width);
      }
    }
  }

  void finish_block() {
    rows_.run();
    for (int r = 0; r < rows_.block.rows; ++r) add_row_to_item(r);
    rows_.block.rows = 0;
  }

  void add_row_to_item(int row) {
    const Tag<R> d;
    const int item = rows_.block.item[row];
    const R sum = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, rows_.sums + row * kLanes<R>)));
    rows_.state[item].sum += sum;
    const int64_t width = geometry_.value_depth;
    const R* HWY_RESTRICT y = rows_.y + row * width;
    const R* HWY_RESTRICT w = w_ + row * width;
    R* HWY_RESTRICT total = rows_.total + item * width;
    if (geometry_.inner() == 0) {
      add_rows(total, total, y, width);
    } else if (problem_.reduce == ValueReduce::product) {
      for (int64_t c = 0; c < width; c += kLanes<R>) {
        hn::Store(hn::MulAdd(hn::Load(d, w + c), hn::Load(d, y + c), hn::Load(d, total + c)), d,
                  total + c);
      }
    } else {
      const Vec<R> weight = hn::Set(d, sum);
      for (int64_t c = 0; c < width; c += kLanes<R>) {
        const Vec<R> both = hn::MulAdd(weight, hn::Load(d, w + c), hn::Load(d, y + c));
        hn::Store(hn::Add(hn::Load(d, total + c), both), d, total + c);
      }
    }
  }

  const DenseForward<T>& problem_;
  const Geometry& geometry_;
  const HeadPack<R>& pack_;
  const int64_t batch_, head_;
  const Range active_;
  Arena<R> arena_;
  ForwardBlock<T> rows_;
  R* const w_;      // [kBlockRows, value_depth]  leading values combined
  R* const query_;  // [depth]                    s1 log2 e query
  Prefix<R> key_prefix_, value_prefix_;
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
