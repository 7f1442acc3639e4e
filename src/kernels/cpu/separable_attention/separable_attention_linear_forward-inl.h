// Forward pass of linear attention, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_SEPARABLE_LINEAR_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_SEPARABLE_LINEAR_FORWARD_INL_H_
#undef NSIMPLEX_KERNELS_SEPARABLE_LINEAR_FORWARD_INL_H_
#else
#define NSIMPLEX_KERNELS_SEPARABLE_LINEAR_FORWARD_INL_H_
#endif

#include "kernels/cpu/separable_attention/separable_attention_linear-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::separable {
namespace HWY_NAMESPACE {

/// The denominator is kept apart from the channels, since one more column would often double their
/// padding. It is a separate row over the queries, den = 1^T P + z Q^T, where z is the sum of the
/// keys.
template <class T>
class LinearForward : LinearSlice<T> {
  using Base = LinearSlice<T>;
  using Base::ahead_, Base::keys_, Base::plan_, Base::problem_, Base::queries_, Base::scratch_;

 public:
  LinearForward(const SeparableForward<T>& problem, const SeparablePlan& plan, int64_t task,
                T* workspace, void* scratch)
      : Base(problem, plan, task, /*backward=*/false, scratch),
        forward_(problem),
        workspace_(workspace) {}

  void run() {
    std::fill_n(scratch_.state, plan_.rows * this->padded_channels(), T{0});
    std::fill_n(scratch_.state_of_ones, plan_.rows, T{0});
    const int64_t chunks = this->chunks();
    if (chunks > 0) {
      this->for_key_blocks({0, this->own_keys(0).begin},
                           [&](Range block) { add_packed(block.size()); });
    }
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      this->enter_chunk(chunk);
      this->fetch_heads(forward_.out, queries_, 0, this->channels());
      if (chunk + 1 < chunks) {
        this->fetch_keys(this->own_keys(chunk + 1));
        this->fetch_heads(problem_.query, this->queries_of(chunk + 1), this->first_row_,
                          this->features());
      }
      sum_chunk();
      add_packed(keys_.size());
      this->write_sums(forward_, workspace_, scratch_.sums);
    }
  }

 private:
  const T* ones() const { return scratch_.keys.value + this->channels(); }

  void add_packed(int64_t count) {
    const KeyRows<T>& keys = scratch_.keys;
    const int64_t rows = plan_.rows, width = plan_.width, channels = this->padded_channels();
    const Product<T> outer{keys.key, 1, rows, keys.value, width, count};
    multiply<T>({scratch_.state, channels, {}, outer, /*add=*/true}, rows, channels, &ahead_);
    const Product<T> sum{ones(), 0, width, keys.key, rows, count};
    multiply<T>({scratch_.state_of_ones, rows, {}, sum, /*add=*/true}, 1, rows, &ahead_);
  }

  void sum_chunk() {
    const KeyRows<T>& keys = scratch_.keys;
    const int64_t rows = plan_.rows, width = plan_.width, channels = this->padded_channels();
    const int64_t m = this->query_rows(), padded = scratch_.padded_rows;
    const int64_t columns = round_up(m, kChannels);
    T *const p = scratch_.products, *const q = scratch_.query_columns;
    this->pack_heads(problem_.query, this->first_row_, this->features(), rows, scratch_.query);
    transpose(scratch_.query, rows, columns, rows, q, padded);

    const Product<T> scores{keys.key, rows, 1, q, padded, this->features()};
    multiply_seen<T>({p, padded, {}, scores}, keys_.size(), columns, &ahead_,
                     [&](int64_t key) { return this->seeing_rows(key); });

    const Product<T> own{p, 1, padded, keys.value, width, keys_.size()};
    const Product<T> before{q, 1, padded, scratch_.state, channels, this->features()};
    multiply<T>({scratch_.sums, width, own, before}, m, channels, &ahead_,
                [&](Range tile) { return this->seen_keys(tile.end - 1); });

    const Product<T> own_den{ones(), 0, width, p, padded, keys_.size()};
    const Product<T> den_before{scratch_.state_of_ones, 0, 1, q, padded, this->features()};
    multiply<T>({scratch_.denominators, padded, own_den, den_before}, 1, columns, &ahead_);
    for (int64_t row = 0; row < m; ++row) {
      scratch_.sums[row * width + this->channels()] = scratch_.denominators[row];
    }
  }

  const SeparableForward<T>& forward_;
  T* workspace_;
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::separable
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
