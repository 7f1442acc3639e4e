// Runs the dense kernel's tasks on the keys that every query has chosen, for one SIMD target
// (toggled guard).
#if defined(NSIMPLEX_KERNELS_SPARSE_SETS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_SPARSE_SETS_INL_H_
#undef NSIMPLEX_KERNELS_SPARSE_SETS_INL_H_
#else
#define NSIMPLEX_KERNELS_SPARSE_SETS_INL_H_
#endif

#include "kernels/common/sparse_problem.h"
#include "kernels/cpu/shared/backward-inl.h"
#include "kernels/cpu/shared/forward-inl.h"
#include "kernels/cpu/sparse_attention/sparse_attention_layout.h"

// The tuples of one query are all combinations of its set of keys: a dense problem with one query
// and as many keys as the set. Its keys and values are gathered in the dense kernel's packed form,
// and the dense kernel's own tasks run on these packed copies, one query after the other. E is the
// kind of their operands.

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::sparse {
namespace HWY_NAMESPACE {
using namespace dense;
using namespace dense::HWY_NAMESPACE;

/// Packs the set of one query and sets the number of keys of the problem.
template <class E, class T, class Problem>
int64_t pack_set(const TupleLists& lists, const DenseProblem<T>& whole, const Geometry& geometry,
                 const PackLayout& layout, int64_t batch, int64_t head, const int64_t* set,
                 Problem& of_set, Accum<T>* pack) {
  const int64_t count = set_size(set, lists.size);
  for (int m = 0; m < geometry.order; ++m) {
    const DenseAxis<T>& axis = whole.axes[m];
    const auto row_of = [&](const Rows<const T>& rows, int64_t row) {
      return row < count ? rows.row(batch, head, set[row]) : nullptr;
    };
    pack_axis<E>(
        geometry, layout, m, {0, count}, [&](int64_t row) { return row_of(axis.key, row); },
        [&](int64_t row) { return row_of(axis.value, row); }, pack);
    of_set.axes[m].visible.length = count;
  }
  return count;
}

template <class E, class T>
class SetsForward {
  using R = Accum<T>;

 public:
  SetsForward(const SparseForward<T>& problem, int64_t batch, int64_t head, R* scratch)
      : problem_(problem),
        batch_(batch),
        head_(head),
        list_(problem.lists.number(batch, head, problem.dense.kv_heads)),
        of_set_(with_length(problem.dense, problem.lists.size)),
        geometry_(of_set_),
        layout_(of_set_, geometry_, /*backward=*/false),
        pack_(scratch),
        head_pack_(layout_, scratch),
        task_(of_set_, geometry_, head_pack_, batch, head, scratch + layout_.size) {}

  void run(Range queries) {
    for (int64_t query = queries.begin; query < queries.end; ++query) {
      pack_set<E>(problem_.lists, problem_.dense, geometry_, layout_, batch_, head_,
                  problem_.lists.set(list_, query), of_set_, pack_);
      task_.run({query * geometry_.group, (query + 1) * geometry_.group});
    }
  }

 private:
  const SparseForward<T>& problem_;
  const int64_t batch_, head_, list_;
  DenseForward<T> of_set_;
  const Geometry geometry_;
  const PackLayout layout_;
  R* const pack_;
  const HeadPack<R> head_pack_;
  ForwardTask<T, E> task_;
};

/// The backward of one query gives gradients of its set's keys, which are added to those of the
/// segment.
template <class E, class T>
class SetsBackward {
  using R = Accum<T>;

 public:
  SetsBackward(const SparseBackward<T>& problem, const HaloGradients<R>& gradients, int64_t batch,
               int64_t head, R* scratch)
      : problem_(problem),
        gradients_(gradients),
        batch_(batch),
        head_(head),
        list_(problem.lists.number(batch, head, problem.dense.kv_heads)),
        of_set_(with_length(problem.dense, problem.lists.size)),
        geometry_(of_set_),
        layout_(of_set_, geometry_, /*backward=*/true),
        own_layout_(set_gradients(of_set_, geometry_)),
        pack_(scratch),
        own_memory_(scratch + layout_.size),
        own_(geometry_, own_layout_, own_memory_),
        head_pack_(layout_, scratch),
        task_(of_set_, geometry_, head_pack_, own_, batch, head, own_memory_ + own_layout_.end) {}

  void run(Range queries) {
    for (int64_t query = queries.begin; query < queries.end; ++query) {
      const int64_t* const set = problem_.lists.set(list_, query);
      const int64_t count = pack_set<E>(problem_.lists, problem_.dense, geometry_, layout_, batch_,
                                        head_, set, of_set_, pack_);
      std::memset(own_memory_, 0, own_layout_.end * sizeof(R));
      task_.run({query * geometry_.group, (query + 1) * geometry_.group});
      for (int p = 0; p < geometry_.order; ++p) {
        const auto add = kTiled<E> && p == geometry_.inner() ? add_columns_of_set : add_rows_of_set;
        add(set, count, own_.key[p], geometry_.key_depth(p), gradients_.key[p]);
        add(set, count, own_.value[p], geometry_.value_depth, gradients_.value[p]);
      }
    }
  }

 private:
  static void add_rows_of_set(const int64_t* set, int64_t count, const R* from, int64_t width,
                              R* to) {
    if (!to) return;
    for (int64_t i = 0; i < count; ++i) {
      R* const row = to + set[i] * width;
      add_rows(row, row, from + i * width, width);
    }
  }

  // The same for gradients that lie transposed, in panels of [width, kPanelKeys].
  static void add_columns_of_set(const int64_t* set, int64_t count, const R* from, int64_t width,
                                 R* to) {
    if (!to) return;
    for (int64_t i = 0; i < count; ++i) {
      R* const row = to + set[i] * width;
      const R* const column = from + i / kPanelKeys * kPanelKeys * width + i % kPanelKeys;
      for (int64_t c = 0; c < width; ++c) row[c] += column[c * kPanelKeys];
    }
  }

  const SparseBackward<T>& problem_;
  const HaloGradients<R>& gradients_;
  const int64_t batch_, head_, list_;
  DenseBackward<T> of_set_;
  const Geometry geometry_;
  const PackLayout layout_;
  const HaloLayout own_layout_;
  R *const pack_, *const own_memory_;
  const HaloGradients<R> own_;
  const HeadPack<R> head_pack_;
  BackwardTask<T, E> task_;
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::sparse
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
