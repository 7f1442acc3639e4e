// Linear attention whose keys never leave, chunk of queries by chunk: the shared part of forward
// and backward, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_SEPARABLE_LINEAR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_SEPARABLE_LINEAR_INL_H_
#undef NSIMPLEX_KERNELS_SEPARABLE_LINEAR_INL_H_
#else
#define NSIMPLEX_KERNELS_SEPARABLE_LINEAR_INL_H_
#endif

#include "kernels/cpu/separable_attention/separable_attention_product-inl.h"
#include "kernels/cpu/separable_attention/separable_attention_task-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::separable {
namespace HWY_NAMESPACE {

/// Let q_i, k_j, v_j be the rows of a chunk's queries and of its own keys (the few keys that not
/// all its queries see), and S the state of the keys before these:
///
///     num_i = sum_{own j that i sees} (q_i . k_j) v_j + q_i S        S += sum_{own j} k_j v_j^T
///
/// So everything is a product of small matrices. A tile of a product has a few rows and takes only
/// the keys that one of these rows sees.
template <class T>
class LinearSlice : protected Task<T> {
 protected:
  using Task<T>::group_, Task<T>::plan_, Task<T>::problem_, Task<T>::queries_;

 public:
  LinearSlice(const SeparableProblem<T>& problem, const SeparablePlan& plan, int64_t task,
              bool backward, void* scratch)
      : Task<T>(problem, plan, task), scratch_(problem, plan, backward, scratch) {}

 protected:
  int64_t chunks() const { return ceil_div(problem_.queries, plan_.chunk); }
  int64_t query_rows() const { return queries_.size() * group_; }
  int64_t features() const { return this->valid_rows_; }
  int64_t channels() const { return problem_.value_dim; }
  int64_t padded_channels() const { return round_up(problem_.value_dim, kChannels); }

  Range queries_of(int64_t chunk) const {
    return {chunk * plan_.chunk, std::min((chunk + 1) * plan_.chunk, problem_.queries)};
  }

  // The keys that the chunk's last query sees and no earlier chunk saw, but only the last ones if
  // there are many, as in the first chunk. A query sees at most one key more than the one before
  // it, so every query sees all keys before these.
  Range own_keys(int64_t chunk) const {
    const SeparableAxis<T>& axis = problem_.axes[0];
    const Range queries = queries_of(chunk);
    const int64_t end = axis.keys(queries.end - 1).end;
    const int64_t seen = chunk == 0 ? 0 : axis.keys(queries.begin - 1).end;
    return {std::max(seen, end - kLinearQueries), end};
  }

  // Packs the chunk's own keys.
  void enter_chunk(int64_t chunk) {
    queries_ = queries_of(chunk);
    keys_ = own_keys(chunk);
    const SeparableAxis<T>& axis = problem_.axes[0];
    for (int64_t i = 0, row = 0, j = 0; i < queries_.size(); ++i) {
      const int64_t seen = axis.keys(queries_.begin + i).end - keys_.begin;
      for (; j < seen; ++j) first_seer_[j] = row;
      for (int64_t g = 0; g < group_; ++g) scratch_.seen[row++] = static_cast<int32_t>(seen);
    }
    this->pack_keys(0, keys_, scratch_.keys);
    ahead_.clear();
  }

  // Own keys that a row of queries sees, and the rows that see an own key.
  Range seen_keys(int64_t row) const { return {0, scratch_.seen[row]}; }
  Range seeing_rows(int64_t key) const { return {first_seer_[key], query_rows()}; }

  // Calls body(block) for blocks of keys, packed.
  template <class Body>
  void for_key_blocks(Range keys, const Body& body) const {
    for (int64_t begin = keys.begin; begin < keys.end; begin += kLinearQueries) {
      const Range block{begin, std::min(begin + kLinearQueries, keys.end)};
      this->pack_keys(0, block, scratch_.keys);
      body(block);
    }
  }

  template <class Row>
  void fetch_heads(const Rows<Row>& rows, Range queries, int64_t begin, int64_t valid) {
    for (int64_t g = 0; g < group_; ++g) {
      ahead_.add(rows, this->batch_, this->head_ * group_ + g, queries, begin, valid);
    }
  }
  void fetch_keys(Range keys) {
    const SeparableAxis<T>& axis = problem_.axes[0];
    ahead_.add(axis.key, this->batch_, this->head_, keys, this->first_row_, features());
    ahead_.add(axis.value, this->batch_, this->head_, keys, 0, channels());
  }

  LinearScratch<T> scratch_;
  Range keys_;
  int64_t first_seer_[kLinearQueries];
  Ahead<T> ahead_;
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::separable
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
