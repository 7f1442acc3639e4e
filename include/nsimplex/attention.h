#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/version.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace nsimplex {

/// Admissible key positions around a query, on one key axis.
///
/// With p = i + (T_m - Tq) the position of query i aligned to the end of the axis, key j is
/// admissible when p - left < j <= p + right. `left` counts the query's own position: a causal
/// window of w holds exactly w keys. -1 is unbounded; left = 0 and anything below -1 are errors.
struct Window {
  int64_t left = -1;
  int64_t right = -1;

  /// The last w keys, the query's own position included.
  static Window last(int64_t w) { return {w, 0}; }
};

/// Score of a tuple: multilinear dot product, or a sum of determinants of (N+1)-chunks of channels.
///
/// product: sum_a q_a k1_a .. kN_a. determinant: sum over chunks of N + 1 channels, of which D
/// holds a whole number, of det[q, k1, .., kN] with the vectors as columns; invariant under a
/// common rotation of every chunk, and of the opposite sign with two axes exchanged.
enum class Form { product, determinant };

/// How the values of a tuple are combined: elementwise product ("and"), sum ("or"), or mean.
enum class Reduce { product, sum, mean };

/// What turns the logits of one query into weights.
///
///     softmax       exp(e) / sum exp(e)                   lse = log of the denominator
///     softmax_sink  exp(e) / (exp(sink) + sum exp(e))     lse = log of the denominator
///     sigmoid       1 / (1 + exp(-e))                     lse = 0
///     relu          max(e, 0) / sum max(e, 0)             lse = log of the denominator
enum class Normalizer { softmax, softmax_sink, sigmoid, relu };

/// Which tuples are inadmissible for repeating a position: none; those with j_m = j_m' on two axes;
/// or also those with j_m = i + (T_m - Tq), the query's own position, on some axis.
enum class Distinct { none, axes, with_query };

/// How query, keys, values and out are laid out: [B, heads, T, D], or [B, T, heads, D] as in
/// FlashAttention. The second is read and written as a view, without a copy.
enum class Layout { bhtd, bthd };

/// Factors of the logits (s1) and of the output (s2).
struct Scale {
  double logit = 1.0;
  double output = 1.0;

  /// s1 = D^-1/2, s2 = 1.
  NSIMPLEX_API static Scale standard(int64_t head_dim);

  /// s1 = D^-(N+1)/2; s2 = Dv^-(N-1)/2 for product, 1/N for sum, 1 for mean. With unit-RMS q, k, v
  /// the operator then has sensitivity 1 and sharpness at most 3 under the inf-RMS norm.
  NSIMPLEX_API static Scale unit(int64_t order, int64_t head_dim, int64_t value_dim, Reduce reduce);
};

struct AttentionOptions {
  bool causal = false;         ///< j_m <= i + (T_m - Tq) on every axis (bottom-right aligned)
  std::vector<Window> window;  ///< empty: unbounded; one entry: every axis; else exactly N entries
  Form form = Form::product;
  Reduce reduce = Reduce::product;
  Normalizer normalizer = Normalizer::softmax;
  std::optional<Scale> scale;  ///< absent: Scale::standard

  /// int64 or int32, [N, B] or [B]: keys at and beyond a length are masked and never read. It only
  /// masks: an axis that goes by places (causal, a window, Distinct::with_query) then has T_m = Tq.
  std::optional<at::Tensor> key_lengths;

  /// Empty, or N of bool [B, T_m]: true takes part, the other keys are never read.
  std::vector<at::Tensor> key_masks;

  /// int64 or int32 [documents + 1], 0 <= .. <= T: boundaries of documents packed along the length,
  /// the same for every batch entry and axis (all T_m = Tq). A query and its tuples lie in one
  /// document.
  std::optional<at::Tensor> cu_seqlens;

  /// Broadcastable to [B, Hq, Tq, T_1, .., T_N], with N + 1 dimensions or more where N >= 2. bool:
  /// true is admissible. Floating: added to the logits, minus infinity allowed; differentiable.
  std::optional<at::Tensor> mask;

  std::optional<at::Tensor> sink;  ///< [Hq], with Normalizer::softmax_sink only; differentiable
  Distinct distinct = Distinct::none;
  /// Axes, as indices of the keys, that get a row of ones: see attention(). The orders 1..N in one
  /// softmax are axes 1..N-1.
  std::vector<int64_t> augment;

  /// Share of tuples whose weight is dropped after normalisation, in [0, 1); the others grow by
  /// 1 / (1 - p). lse is that of all. What is dropped is a function of seed, batch entry, head,
  /// query and keys alone.
  double dropout_p = 0.0;
  std::optional<int64_t> seed;  ///< of the dropout; absent: drawn from torch's default generator

  Layout layout = Layout::bhtd;  ///< of query, keys, values and out; all else stays as it is
};

struct AttentionOutput {
  at::Tensor out;  ///< [B, Hq, Tq, Dv], dtype of the query
  at::Tensor lse;  ///< [B, Hq, Tq], natural log; fp32, or fp64 for fp64 inputs
};

/// N-simplicial attention: every query attends to tuples of N keys, one from each of N key axes.
///
///     e_iJ  = s1 form(q_i, k1_{j1}, .., kN_{jN}) + mask_iJ      J = (j1, .., jN) admissible
///     o_i   = s2 sum_J softmax_J(e_iJ) reduce(v1_{j1}, .., vN_{jN})
///     lse_i = log sum_J exp(e_iJ)
///
/// One softmax a query (or another Normalizer), over all its tuples; N = 1 is ordinary attention.
///
/// `augment` gives axes one more key, a row of ones that every query sees whatever window, causal
/// mask and lengths say, with a value of ones (sum: zeros; mean: left out). A tuple that takes it
/// is one of a lower order, with the scales of order N, so axes 1..N-1 put the orders 1..N into one
/// softmax. The tuple of nothing but ones is left out. Product form only, without mask; dropout
/// draws for each order by itself. Cost: that of one call for every choice of ones rows.
///
/// Shapes: query [B, Hq, Tq, D]; keys N of [B, Hk, T_m, D]; values N of [B, Hk, T_m, Dv], N <= 8.
/// Every axis has a length of its own, Hq is a multiple of Hk (grouped queries), strides are free.
/// dtypes: float32, float64, bfloat16, float16, the same for all; accumulation and lse are never
/// below float32. `out` has the memory order of the query.
///
/// A query without an admissible tuple has out = 0, lse = -inf and zero gradients. Both outputs are
/// differentiable, any number of times. Results do not depend on the number of threads.
///
/// Complexity: 2 (D + Dv) flops for every query, head and admissible tuple, three times that
/// backward; O(T (D + Dv)) memory besides a mask. The CPU runs the SIMD kernel for every dtype and
/// option; other devices, the gradient of the mask and derivatives of second order, the reference.
///
/// Errors: c10::ValueError or c10::TypeError with one line that names the argument, what was
/// expected and what came.
///
/// Sources: Clift et al., arXiv 1909.00668; Roy et al., arXiv 2507.02754; sum and mean: Pappone.
NSIMPLEX_API AttentionOutput attention(const at::Tensor& query, at::TensorList keys,
                                       at::TensorList values, const AttentionOptions& options = {});

/// The same from plain ATen calls, whatever the dtype and device: what every kernel is measured
/// against.
NSIMPLEX_API AttentionOutput attention_reference(const at::Tensor& query, at::TensorList keys,
                                                 at::TensorList values,
                                                 const AttentionOptions& options = {});

/// Elements that attention_weights() agrees to return: 256 MiB in float32.
inline constexpr int64_t kMaxAttentionWeights = int64_t{1} << 26;

/// The weight of every tuple, for small problems: [B, Hq, Tq, T_1, .., T_N], float32, or float64
/// for float64 inputs; 0 where a tuple is inadmissible.
///
/// Takes the options of attention() but augment; reduce and the output scale have no part in it.
/// With dropout these are the weights after it. Made of ATen calls and differentiable through them,
/// any number of times: memory is a few times the result.
///
/// Errors: c10::ValueError above kMaxAttentionWeights elements, and those of attention().
NSIMPLEX_API at::Tensor attention_weights(const at::Tensor& query, at::TensorList keys,
                                          const AttentionOptions& options = {});

/// The weight that a query puts on each key of one axis, summed over the other axes:
/// [B, Hq, Tq, T_axis] in the query's dtype.
///
/// It is attention() with reduce = sum, unit vectors as the values of that axis and zeros as the
/// others, so no tuple is stored, and every option and derivative is the operator's. reduce and the
/// output scale of `options` are not used. Cost: that call, with Dv = T_axis.
NSIMPLEX_API at::Tensor attention_marginals(const at::Tensor& query, at::TensorList keys,
                                            int64_t axis, const AttentionOptions& options = {});

/// The weight that each key of one axis receives, summed over the other axes, all queries and the
/// query heads of its group: [B, Hk, T_axis] in the query's dtype.
///
/// It is the gradient of that axis' values in attention() with reduce = sum and Dv = 1: one forward
/// and one backward, memory O(T). Differentiable, through the reference.
NSIMPLEX_API at::Tensor attention_received(const at::Tensor& query, at::TensorList keys,
                                           int64_t axis, const AttentionOptions& options = {});

/// Floating-point operations of a forward call: 2 (D + Dv) for every query, head and admissible
/// tuple: windows, key lengths and documents count, other masks change nothing. A backward call has
/// three times as many: six products a tuple instead of two. Exponentials and what is outside the
/// matrix products are not counted. O(B Tq N) time.
NSIMPLEX_API double attention_flops(const at::Tensor& query, at::TensorList keys,
                                    at::TensorList values, const AttentionOptions& options = {});

/// Bytes that the CPU kernel takes besides inputs and outputs.
struct AttentionWorkspace {
  int64_t forward_bytes = 0;
  int64_t backward_bytes = 0;
};

/// Workspace of a call and of its backward, at the present number of threads; zeros where the call
/// goes by the reference.
NSIMPLEX_API AttentionWorkspace attention_workspace(const at::Tensor& query, at::TensorList keys,
                                                    at::TensorList values,
                                                    const AttentionOptions& options = {});

/// Attention over a set of tuples from the results over its parts.
///
///     lse = log sum_p exp(lse_p)
///     out = sum_p exp(lse_p - lse) out_p
///
/// Exact where no tuple belongs to two parts. For N >= 2 the parts are of tuples: cutting one key
/// axis into blocks makes such parts, cutting two axes into pairs of blocks needs every pair. This
/// is the base of split keys, decoding and parallelism over the context.
///
/// Shapes: outs P >= 1 of [.., Dv], lses P of [..], as attention() returns them. A row that has no
/// tuple in a part (lse = -inf) adds nothing; one that has none in any part has out = 0 and lse =
/// -inf. Differentiable in outs and lses, any number of times, forward and backward. `out` has the
/// dtype and memory order of outs[0]; lses are float32 or float64, the same for all, and the sums
/// are made in their dtype.
///
/// Normalisers softmax and relu merge by this formula. With a sink only one part may have it.
/// Results of sigmoid simply add, without this function.
///
/// Complexity: P (Dv + 2) operations a row, memory bound.
///
/// Errors: c10::ValueError or c10::TypeError that names the part.
NSIMPLEX_API AttentionOutput merge_attention(at::TensorList outs, at::TensorList lses);

/// Attention with one softmax a face: the tuples that share a query and their first N-1 keys.
///
///     e_iJ  = s1 form(q_i, k1_{j1}, .., kN_{jN})
///     A_iJ  = softmax over jN of e_iJ, for every face (i, j1, .., j_{N-1})
///     o_i   = s2 / F_i sum_J A_iJ reduce(v1_{j1}, .., vN_{jN})
///     lse   = log sum over jN of exp(e_iJ), one a face
///
/// with lse [B, Hq, Tq, T_1, .., T_{N-1}] and F_i the number of faces of query i that have an
/// admissible jN. A query without any has o_i = 0; a face without any has lse = -inf and no part in
/// the mean. For N = 1 this is attention().
///
/// Shapes, dtypes and options are those of attention() with normalizer = softmax, without augment.
/// Both outputs are differentiable, any number of times; made of ATen calls, so that a forward
/// without gradients takes O(T D) memory besides lse, and one with gradients keeps the tuples.
///
/// Complexity: 2 (D + Dv) flops for every query, head and admissible tuple.
///
/// Errors: c10::ValueError for other normalisers or augment, and those of attention().
///
/// Source: Pappone, "Beyond Attention as a Graph" (2025).
NSIMPLEX_API AttentionOutput face_attention(const at::Tensor& query, at::TensorList keys,
                                            at::TensorList values,
                                            const AttentionOptions& options = {});

struct ContinuousOrder {
  std::vector<at::Tensor> keys, values;  ///< for attention(), N of each
  Scale scale;                           ///< for AttentionOptions::scale
};

/// Attention of an order between two whole ones (experimental): what attention() is to be called
/// with, given N keys and values, for an order n = N - 1 + a, 0 <= a <= 1.
///
///     kN <- (1 - a) 1 + a kN,  vN <- (1 - a) 1 + a vN
///     s1 = D^(-N/2) / ((1 - a) + a D^1/2),  s2 = Dv^-(N-2)/2 / ((1 - a) + a Dv^1/2)
///
/// a = 1 is order N and a = 0 order N - 1, with the unit scales of either; at every order between
/// them the sensitivity to inputs of unit root mean square is 1 as well. A trained model's order
/// can be scaled so. For the product form and reducer. The other keys and values are
/// handed through. Unless mask or distinct ties the axes together, a = 0 gives the output of order
/// N - 1 exactly, and an lse that is larger by the log of the number of keys that the query sees on
/// the last axis.
///
/// Errors: c10::ValueError for fewer than 2 keys or an order outside [N - 1, N].
NSIMPLEX_API ContinuousOrder continuous_order(at::TensorList keys, at::TensorList values,
                                              double order);

}  // namespace nsimplex
