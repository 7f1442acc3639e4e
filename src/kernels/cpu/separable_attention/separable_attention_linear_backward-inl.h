// Backward pass of linear attention, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_SEPARABLE_LINEAR_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_SEPARABLE_LINEAR_BACKWARD_INL_H_
#undef NSIMPLEX_KERNELS_SEPARABLE_LINEAR_BACKWARD_INL_H_
#else
#define NSIMPLEX_KERNELS_SEPARABLE_LINEAR_BACKWARD_INL_H_
#endif

#include "kernels/cpu/separable_attention/separable_attention_linear-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::separable {
namespace HWY_NAMESPACE {

// Let H be the rows of gradients of (num, den) of the chunk's queries, V the values and their ones,
// P = Q K^T and A = H V^T for visible own keys and 0 elsewhere, and E the gradient of the state
// from the later chunks:
//
//     dQ = A K + H S^T      dK = A^T Q + V E^T      dV = P^T H + K E      E += Q^T H
//
// dQ needs the states of the keys before a chunk, and dK, dV those of the queries after it. One
// pass goes forward and one backward, each with one state, and only A is computed twice. Nearly all
// products read a state by its channels, so both are stored transposed; den then is one more number
// of the depth.
template <class T>
class LinearBackward : LinearSlice<T> {
  using Base = LinearSlice<T>;
  using Base::ahead_, Base::keys_, Base::plan_, Base::problem_, Base::queries_, Base::scratch_;

 public:
  LinearBackward(const SeparableBackward<T>& problem, const SeparablePlan& plan, int64_t task,
                 void* scratch)
      : Base(problem, plan, task, /*backward=*/true, scratch), backward_(problem) {}

  void run() {
    const int64_t chunks = this->chunks(), length = problem_.axes[0].visible.length;
    if (chunks == 0) return this->clear_key_gradients(backward_, 0, {0, length});
    const Range before{0, this->own_keys(0).begin};
    const Range unseen{this->own_keys(chunks - 1).end, length};

    std::fill_n(scratch_.state, plan_.rows * plan_.width, T{0});
    this->for_key_blocks(before, [&](Range block) { add_to_state(block.size()); });
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      enter_chunk(chunk, chunk + 1);
      this->fetch_heads(backward_.grad_query, queries_, this->first_row_, this->features());
      differentiate_queries();
      add_to_state(keys_.size());
      this->write_grad_query(backward_, scratch_.grad_query);
    }

    std::fill_n(scratch_.grad_state, plan_.rows * plan_.width, T{0});
    for (int64_t chunk = chunks - 1; chunk >= 0; --chunk) {
      enter_chunk(chunk, chunk - 1);
      this->pack_heads(problem_.query, this->first_row_, this->features(), plan_.rows,
                       scratch_.query);
      if (chunk > 0) {
        this->fetch_heads(problem_.query, this->queries_of(chunk - 1), this->first_row_,
                          this->features());
      }
      differentiate_keys(keys_);
      add_to_grad_state();
    }
    queries_ = {0, 0};
    this->for_key_blocks(before, [&](Range block) { differentiate_keys(block); });
    this->clear_key_gradients(backward_, 0, unseen);
  }

 private:
  static constexpr int64_t kKeys = kLinearQueries;

  // num and den.
  int64_t sums() const { return this->channels() + 1; }

  void enter_chunk(int64_t chunk, int64_t next) {
    Base::enter_chunk(chunk);
    this->pack_grad_sums(backward_, scratch_.sums);
    if (next < 0 || next == this->chunks()) return;
    this->fetch_keys(this->own_keys(next));
    this->fetch_heads(backward_.grad_out, this->queries_of(next), 0, this->channels());
    this->fetch_heads(backward_.out, this->queries_of(next), 0, this->channels());
  }

  void fetch_key_gradients(Range keys) {
    Rows<T> grad_value = backward_.grad_value[0];
    grad_value.data += this->slice_ * backward_.slice_stride[0];
    ahead_.add(backward_.grad_key[0], this->batch_, this->head_, keys, this->first_row_,
               this->features());
    ahead_.add(grad_value, this->batch_, this->head_, keys, 0, this->channels());
  }

  // A.
  void multiply_values() {
    const int64_t own = round_up(keys_.size(), kChannels), width = plan_.width;
    transpose(scratch_.keys.value, width, own, round_up(sums(), 4), scratch_.columns.value, kKeys);
    const Product<T> a{scratch_.sums, width, 1, scratch_.columns.value, kKeys, sums()};
    multiply_seen<T>({scratch_.grad_products, kKeys, {}, a}, this->query_rows(), own, &ahead_,
                     [&](int64_t row) { return this->seen_keys(row); });
  }

  // P, for transposed keys.
  void multiply_keys() {
    const int64_t own = round_up(keys_.size(), kChannels), rows = plan_.rows;
    const Product<T> p{scratch_.query, rows, 1, scratch_.columns.key, kKeys, this->features()};
    multiply_seen<T>({scratch_.products, kKeys, {}, p}, this->query_rows(), own, &ahead_,
                     [&](int64_t row) { return this->seen_keys(row); });
  }

  // dQ.
  void differentiate_queries() {
    const int64_t rows = plan_.rows, width = plan_.width;
    multiply_values();
    const Product<T> own{scratch_.grad_products, kKeys, 1, scratch_.keys.key, rows, keys_.size()};
    const Product<T> before{scratch_.sums, width, 1, scratch_.state, rows, sums()};
    multiply<T>({scratch_.grad_query, rows, own, before}, this->query_rows(), rows, &ahead_,
                [&](Range tile) { return this->seen_keys(tile.end - 1); });
  }

  // S^T += V^T K, of packed keys.
  void add_to_state(int64_t count) {
    const int64_t rows = plan_.rows;
    const Product<T> outer{scratch_.keys.value, 1, plan_.width, scratch_.keys.key, rows, count};
    multiply<T>({scratch_.state, rows, {}, outer, /*add=*/true}, sums(), rows, &ahead_);
  }

  // dK and dV of packed keys: the chunk's own, or, without queries, keys that every query sees.
  void differentiate_keys(Range keys) {
    const int64_t rows = plan_.rows, width = plan_.width, m = this->query_rows();
    const KeyRows<T>&packed = scratch_.keys, &grads = scratch_.grads;
    const int64_t own = round_up(keys.size(), kChannels);
    transpose(packed.key, rows, own, rows, scratch_.columns.key, kKeys);
    if (m > 0) {
      multiply_values();
      multiply_keys();
      fetch_key_gradients(keys);
    }
    const auto seeing = [&](Range tile) {
      return m > 0 ? this->seeing_rows(tile.begin) : Range{0, 0};
    };
    const Product<T> key_own{scratch_.grad_products, 1, kKeys, scratch_.query, rows, m};
    const Product<T> key_behind{packed.value, width, 1, scratch_.grad_state, rows, sums()};
    multiply<T>({grads.key, rows, key_own, key_behind}, keys.size(), rows, &ahead_, seeing);

    // Transposed like the state; transposing the state instead would be more work.
    const int64_t channels = round_up(this->channels(), 4);
    const Product<T> value_own{scratch_.sums, 1, width, scratch_.products, kKeys, m};
    const Product<T> value_behind{scratch_.grad_state,  rows,  1,
                                  scratch_.columns.key, kKeys, this->features()};
    multiply<T>({scratch_.grad_columns, kKeys, value_own, value_behind}, channels, own, &ahead_);
    transpose(scratch_.grad_columns, kKeys, channels, own, grads.value, width);
    this->write_key_gradients(backward_, 0, keys, grads);
  }

  // E^T += H^T Q.
  void add_to_grad_state() {
    const int64_t rows = plan_.rows;
    const Product<T> outer{scratch_.sums, 1, plan_.width, scratch_.query, rows, this->query_rows()};
    multiply<T>({scratch_.grad_state, rows, {}, outer, /*add=*/true}, sums(), rows, &ahead_);
  }

  const SeparableBackward<T>& backward_;
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::separable
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
