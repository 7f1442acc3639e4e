// Forward pass of the dense kernel, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_FORWARD_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_FORWARD_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_FORWARD_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "kernels/cpu/shared/combine-inl.h"
#include "kernels/cpu/shared/forward_block-inl.h"
#include "kernels/cpu/shared/forward_output-inl.h"
#include "kernels/cpu/shared/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// One task: a run of items of one key/value head with all their tuples. Rows are gathered into
/// blocks. At the end of a block every row adds (its leading values) o Y to its item.
template <class T, class E>
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
        arena_(scratch),
        filter_(problem, geometry, batch),
        rows_(problem, geometry, pack, filter_, arena_),
        w_(arena_.take(kBlockRows * geometry.value_depth)),
        query_(arena_.take(geometry.lead_depth)),
        key_prefix_(arena_, geometry, /*backward=*/false),
        value_prefix_(arena_, geometry.inner(), geometry.value_depth) {}

  /// Processes all tuples of the items and writes the output.
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

  /// Processes one chunk's tuples with inner keys in `keys`, and leaves states and totals for
  /// merge_parts().
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
    for (int i = 0; i < count; ++i) add_item(first + i, i, keys);
    if (rows_.block.rows > 0) finish_block();
  }

  // Appends one row per leading tuple of an item.
  void add_item(int64_t item, int slot, Range keys) {
    const int64_t query = item / geometry_.group, head = geometry_.query_head(head_, item);
    const Visibility& visible = problem_.axes[geometry_.axis[geometry_.inner()]].visible;
    const Range inner = intersect(keys, visible.of(batch_, query));
    if (inner.size() == 0) return;
    if (!problem_.wants((batch_ * problem_.heads + head) * problem_.queries + query)) return;
    load_channels(query_, problem_.query.row(batch_, head, query), geometry_.lead);
    scale_row(query_, static_cast<R>(query_scale<E>(geometry_)), geometry_.lead_depth);

    const bool general = filter_.general();
    for (TupleWalk walk(problem_, geometry_, batch_, head, query); walk.next();) {
      const int row = rows_.block.rows++;
      rows_.block.item[row] = slot;
      rows_.block.inner[row] = inner;
      if (general) filter_.set_row(row, head, query, walk);
      combine_leading(walk, row);
      if (rows_.block.full()) finish_block();
    }
  }

  // U = query combined with leading keys, W = product or sum of the leading values.
  void combine_leading(const TupleWalk& walk, int row) {
    const int leading = geometry_.inner();
    const int64_t width = geometry_.value_depth;
    const R* keys[kMaxOrder];
    for (int p = 0; p < leading; ++p) keys[p] = pack_.keys[p] + walk[p] * geometry_.lead_depth;
    key_prefix_.combine(query_, keys, walk.changed(), rows_.u + row * geometry_.depth);
    for (int p = walk.changed(); p < leading; ++p) {
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
    const Block& block = rows_.block;
    for (int begin = 0, end; begin < block.rows; begin = end) {
      end = begin + 1;
      while (end < block.rows && block.item[end] == block.item[begin]) ++end;
      add_rows_to_item(begin, end, block.item[begin]);
    }
    rows_.block.rows = 0;
  }

  // Adds rows [begin, end) to the one item that they belong to.
  void add_rows_to_item(int begin, int end, int item) {
    const Tag<R> d;
    Vec<R> sum = hn::Zero(d);
    for (int r = begin; r < end; ++r) sum = hn::Add(sum, hn::Load(d, rows_.sums + r * kLanes<R>));
    rows_.state[item].sum += hn::GetLane(hn::SumOfLanes(d, sum));
    const int64_t width = geometry_.value_depth;
    R* const total = rows_.total + item * width;
    if (geometry_.inner() == 0) {
      for (int r = begin; r < end; ++r) add_rows(total, total, rows_.y + r * width, width);
    } else if (problem_.reduce == ValueReduce::product) {
      for (int64_t c = 0; c < width; c += kLanes<R>) {
        const R* const y = rows_.y + c;
        const R* const w = w_ + c;
        Vec<R> all = hn::Load(d, total + c);
        for (int r = begin; r < end; ++r) {
          all = hn::MulAdd(hn::Load(d, w + r * width), hn::Load(d, y + r * width), all);
        }
        hn::Store(all, d, total + c);
      }
    } else {
      for (int r = begin; r < end; ++r) {
        const Vec<R> lanes = hn::Load(d, rows_.value_sums + r * kLanes<R>);
        const Vec<R> weight = hn::Set(d, hn::GetLane(hn::SumOfLanes(d, lanes)));
        for (int64_t c = 0; c < width; c += kLanes<R>) {
          const Vec<R> both = hn::MulAdd(weight, hn::Load(d, w_ + r * width + c),
                                         hn::Load(d, rows_.y + r * width + c));
          hn::Store(hn::Add(hn::Load(d, total + c), both), d, total + c);
        }
      }
    }
  }

  const DenseForward<T>& problem_;
  const Geometry& geometry_;
  const HeadPack<R>& pack_;
  const int64_t batch_, head_;
  Arena<R> arena_;
  TupleFilter<T> filter_;
  ForwardBlock<T, E> rows_;
  R* const w_;      // [kBlockRows, value_depth]  leading values combined
  R* const query_;  // [lead_depth]              query times its scale
  KeyPrefix<R> key_prefix_;
  Prefix<R> value_prefix_;
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
