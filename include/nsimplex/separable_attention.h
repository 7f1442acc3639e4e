// N-simplicial attention with a separable kernel, in time linear in the length.

#pragma once

#include <nsimplex/attention.h>
#include <nsimplex/cache.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace nsimplex {

struct SeparableOptions {
  bool causal = false;         ///< as in AttentionOptions
  std::vector<Window> window;  ///< empty: unbounded; one entry: every axis; else exactly N entries
  Layout layout = Layout::bhtd;  ///< of query, keys, values and out
};

struct SeparableOutput {
  at::Tensor out;         ///< [B, Hq, Tq, Dv], dtype of the query
  at::Tensor normalizer;  ///< den, [B, Hq, Tq]; float32, or float64 for float64 inputs
};

/// N-simplicial attention with a separable kernel, in time linear in the length.
///
///     num_i = sum_r q_i[r] prod_m ( sum_{j in A_m(i)} k^m_j[r] v^m_j )      products over channels
///     den_i = sum_r q_i[r] prod_m ( sum_{j in A_m(i)} k^m_j[r] )
///     o_i   = num_i / den_i
///
/// query and keys hold features, which are usually non-negative (feature_map() makes them). The
/// weight of a tuple is sum_r q_i[r] k^1_{j1}[r] .. k^N_{jN}[r], divided by the sum of all weights,
/// with the product of the values as in attention(). These are the weights of this kernel and not
/// of a softmax. N = 1 is linear attention. A_m(i) are the keys that the causal mask and the window
/// of the axis admit.
///
/// Shapes: query [B, Hq, Tq, R]; keys N of [B, Hk, T_m, R]; values N of [B, Hk, T_m, Dv], N <= 8.
/// Every axis has its own length, Hq is a multiple of Hk, and strides are free. dtypes: float32,
/// float64, bfloat16, float16, the same for all; the latter two are computed in float32. `out` has
/// the memory order of the query.
///
/// A query with den = 0 (no key on some axis, or all-zero features) has out = 0 and zero gradients.
/// Both outputs are differentiable any number of times. Results do not depend on the number of
/// threads. Sums over windows are never updated by subtraction. They are made of whole blocks of
/// keys and the remaining keys, so that a key that has left the window leaves no rounding error
/// behind.
///
/// Complexity: 2 R (Dv + 1) (N + Hq / Hk) flops per query and key head. Axes with a bounded left
/// window w need about three times that (and w / 4096 times, for its blocks), and the backward pass
/// about five times that. Memory besides inputs and outputs, for every key head that a thread works
/// on: states of R (Dv + 1), and one of them for every 64 keys of an axis with a left window or,
/// backward, every 32 queries of an axis without one. The CPU runs a SIMD kernel. Other devices,
/// second derivatives, forward mode and functorch run the quadratic reference.
///
/// Errors: c10::ValueError or c10::TypeError with one line that names the argument.
///
/// Sources: Katharopoulos et al., arXiv 2006.16236, for N = 1, equations 5 to 9; higher orders are
/// this library's.
NSIMPLEX_API SeparableOutput separable_attention(const at::Tensor& query, at::TensorList keys,
                                                 at::TensorList values,
                                                 const SeparableOptions& options = {});

/// The same function from plain ATen calls in O(Tq T_m R Dv). The kernel is compared with it.
NSIMPLEX_API SeparableOutput separable_attention_reference(const at::Tensor& query,
                                                           at::TensorList keys,
                                                           at::TensorList values,
                                                           const SeparableOptions& options = {});

/// How channels become features.
///
///     elu     elu(s x) + 1: s x + 1 above 0, exp(s x) below, D features
///                                                            (Katharopoulos et al., equation 7)
///     relu    max(s x, 0), D features
///     random  exp(w_r . (s x) - |s x|^2 / 2) / sqrt(R), R features, w_r standard normal
///             (Choromanski et al., arXiv 2009.14794, lemma 1)
///
/// The expectation of the `random` kernel over N keys is exp of the sum of all dot products among
/// the query and the keys of the tuple. For N = 1 this is the softmax kernel, but for N > 1 it is
/// not the multilinear form of attention().
enum class Feature { elu, relu, random };

struct FeatureOptions {
  Feature kind = Feature::elu;
  int64_t features = 0;     ///< R of `random`; 0: as many as channels
  int64_t seed = 0;         ///< of `random`: the same seed, R and D give the same w everywhere
  bool orthogonal = false;  ///< of `random`: w_r orthogonal within blocks of D, lengths as drawn
  std::optional<double> scale;  ///< s; absent: D^-1/4 for `random`, 1 otherwise
};

/// Non-negative features of x [.., D]: [.., D], or [.., R] for `random`. Differentiable in x any
/// number of times. 16-bit types are computed in float32. `elu` is exact to a few ulp even if it is
/// small, and it is 0 only if exp of the dtype is (float32: from s x = -104 on). The bits of `elu`
/// and `relu` do not depend on the number of threads; `random` uses torch's matrix product. The
/// exponent of `random` is computed in float32 or wider. It underflows for vectors much longer than
/// sqrt(D), so normalise queries and keys.
NSIMPLEX_API at::Tensor feature_map(const at::Tensor& x, const FeatureOptions& options = {});

/// Causal separable attention token by token, with memory that does not grow with their number.
///
///     SeparableCache cache({-1, 64});                 // -1: all keys; 64: the last 64 of them
///     cache.attend(query, {k1, k2}, {v1, v2});        // the prompt, in chunks of any length
///     cache.attend(next_query, {k1, k2}, {v1, v2});   // one token after the other
///
/// The result equals that of separable_attention() over the whole sequence with causal = true and
/// these windows, to rounding, however the sequence is cut. An unbounded axis keeps its state,
/// sum_j k_j[r] (v_j, 1), [B, Hk, R, Dv + 1] in float32 or wider. A bounded axis keeps the features
/// and values of at most its last w keys, so that nothing is subtracted. A token costs O(R Dv) per
/// unbounded axis and O(w R Dv) per bounded one. A chunk costs as much as separable_attention()
/// with R more keys for the state.
///
/// The first chunk determines shapes, dtype and device. For inference only: tensors that require a
/// gradient are refused while gradients are recorded. A handle, like a tensor: copies share one
/// cache. Not safe for two threads at a time.
class NSIMPLEX_API SeparableCache : public LayerCache {
 public:
  explicit SeparableCache(std::vector<int64_t> window);

  /// Appends a chunk of t >= 1 tokens and attends with its queries. All arguments are features, as
  /// in separable_attention().
  SeparableOutput attend(const at::Tensor& query, at::TensorList keys, at::TensorList values);

  const std::vector<int64_t>& window() const override;
  int64_t position() const override;
  int64_t bytes() const override;
  void reset() override;
  void select(const at::Tensor& entries) override;

  /// `position` and, once there are tokens, `states.<m>`, or `keys.<m>` and `values.<m>`.
  CacheState state() const override;
  void load_state(const CacheState& state) override;
  std::shared_ptr<LayerCache> fresh() const override;
  void take(LayerCache& other) override;

 private:
  struct Axis;
  struct Storage;
  SeparableOutput attend_chunk(const at::Tensor& query, std::vector<at::Tensor> keys,
                               std::vector<at::Tensor> values) const;
  SeparableOutput attend_token(const at::Tensor& like, const at::Tensor& query) const;

  std::shared_ptr<Storage> storage_;
};

}  // namespace nsimplex
