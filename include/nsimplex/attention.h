// Dense N-simplicial attention and the operators beside it.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/version.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace nsimplex {

/// Admissible key positions around a query, on one key axis.
///
/// Let p = i + (T_m - Tq) be the position of query i, aligned to the end of the axis. Key j is
/// admissible if p - left < j <= p + right. `left` counts the query's own position: a causal window
/// of w holds exactly w keys. -1 means unbounded. left = 0 and values below -1 are errors.
struct Window {
  int64_t left = -1;
  int64_t right = -1;

  /// The last w keys, the query's own position included.
  static Window last(int64_t w) { return {w, 0}; }
};

/// Score of a tuple: multilinear dot product, or a sum of determinants of (N+1)-chunks of channels.
///
/// product: sum_a q_a k1_a .. kN_a. determinant: the sum over chunks of N + 1 channels of det[q,
/// k1, .., kN] with the vectors as columns. D must be a multiple of N + 1. The determinant is
/// invariant under a common rotation of every chunk and changes its sign when two axes are
/// exchanged.
enum class Form { product, determinant };

/// How the values of a tuple are combined: elementwise product ("and"), sum ("or"), or mean.
enum class Reduce { product, sum, mean };

/// How the logits of one query become weights.
///
///     softmax       exp(e) / sum exp(e)                   lse = log of the denominator
///     softmax_sink  exp(e) / (exp(sink) + sum exp(e))     lse = log of the denominator
///     sigmoid       1 / (1 + exp(-e))                     lse = 0
///     relu          max(e, 0) / sum max(e, 0)             lse = log of the denominator
enum class Normalizer { softmax, softmax_sink, sigmoid, relu };

/// Which tuples are inadmissible because they repeat a position. none: no tuple. axes: tuples with
/// j_m = j_m' on two axes. with_query: also those with j_m = i + (T_m - Tq), the query's own
/// position, on some axis.
enum class Distinct { none, axes, with_query };

/// Memory layout of query, keys, values and out: [B, heads, T, D], or [B, T, heads, D] as in
/// FlashAttention. The second one is read and written as a view, without a copy.
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
  /// c > 0: a logit x becomes c tanh(x / c), before the mask is added. Absent: logits stay.
  std::optional<double> softcap;

  /// [Hq], floating, without a gradient. slope_h times the sum over the axes of |p - j_m|, p the
  /// query's position, is subtracted from the logits: ALiBi at N = 1. Not with `augment`.
  std::optional<at::Tensor> alibi_slopes;

  /// int64 or int32, [N, B] or [B]. Keys at and beyond a length are masked and never read. Lengths
  /// do not shift positions: without `query_positions`, an axis whose mask depends on positions
  /// (causal, a window, Distinct::with_query) must then have T_m = Tq.
  std::optional<at::Tensor> key_lengths;

  /// Empty, or N of bool [B, T_m]. True keys take part; the others are never read.
  std::vector<at::Tensor> key_masks;

  /// int64 or int32 [documents + 1], rising from 0 to T: boundaries of documents that are packed
  /// along the length. They are the same for every batch entry and axis (all T_m = Tq). A query
  /// attends only within its document.
  std::optional<at::Tensor> cu_seqlens;

  /// Broadcastable to [B, Hq, Tq, T_1, .., T_N]; at least N + 1 dimensions if N >= 2. In a bool
  /// mask, true is admissible. A floating mask is added to the logits; it may contain minus
  /// infinity and is differentiable.
  std::optional<at::Tensor> mask;

  /// Empty, or one mask per axis m over the pairs of a query and a key, broadcastable to [B, Hq, Tq,
  /// T_m], with 2 dimensions or more. Bool: a tuple is admissible if all its pairs are. Floating:
  /// the numbers of a tuple's pairs are added to its logit; differentiable. Not with `augment`.
  std::vector<at::Tensor> pair_masks;

  std::optional<at::Tensor> sink;  ///< [Hq], only with Normalizer::softmax_sink; differentiable
  Distinct distinct = Distinct::none;
  /// Axes, as indices of the keys, that get a row of ones: see attention(). Axes 1..N-1 give the
  /// orders 1..N in one softmax.
  std::vector<int64_t> augment;

  /// The share of tuples, in [0, 1), whose weight is dropped after normalisation. The others are
  /// multiplied by 1 / (1 - p). lse includes all tuples. The choice of dropped tuples depends only
  /// on seed, batch entry, head, query and keys.
  double dropout_p = 0.0;
  std::optional<int64_t> seed;  ///< of the dropout; absent: drawn from torch's default generator

  /// int64 or int32 [B, Tq] or [B]: the positions of the queries among the keys, which take the
  /// place of i + (T_m - Tq) on every axis. [B] gives the position of an entry's first query, and
  /// the others follow it one by one. Positions do not fall from one query to the next, and may lie
  /// outside the keys. Not with `cu_seqlens`.
  std::optional<at::Tensor> query_positions;

  /// Floating [N, Hq], only with `augment` and a softmax: row n - 1 is added to the logits of all
  /// tuples of n keys. Differentiable.
  std::optional<at::Tensor> order_bias;

  /// of query, keys, values and out; lse and options keep their shapes
  Layout layout = Layout::bhtd;
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
/// There is one softmax (or another Normalizer) per query, over all its tuples. N = 1 is ordinary
/// attention.
///
/// `augment` gives axes one more key, a row of ones, with a value of ones (for sum, zeros; for
/// mean, the value is left out). Every query sees it, whatever the window, the causal mask and the
/// lengths are. A tuple that uses it is a tuple of a lower order, with the scales of order N, so
/// axes 1..N-1 put the orders 1..N into one softmax. The tuple that consists of ones only is left
/// out. `augment` needs the product form and no mask. Dropout draws separately for each order.
/// Cost: one call for every choice of ones rows.
///
/// Shapes: query [B, Hq, Tq, D]; keys N of [B, Hk, T_m, D]; values N of [B, Hk, T_m, Dv], N <= 8.
/// Every axis has its own length, Hq is a multiple of Hk (grouped queries), and strides are free.
/// dtypes: float32, float64, bfloat16, float16, the same for all inputs. Accumulation and lse are
/// never below float32. `out` has the memory order of the query.
///
/// A query without an admissible tuple has out = 0, lse = -inf and zero gradients. Both outputs are
/// differentiable any number of times. Results do not depend on the number of threads.
///
/// Complexity: 2 (D + Dv) flops for every query, head and admissible tuple, and three times that
/// backward. Memory: O(T (D + Dv)) besides a mask. The CPU runs the SIMD kernel for every dtype and
/// option, but for the gradient of a mask that is the same for all queries. That, other devices and
/// second derivatives use the reference, unless kernels for a GPU are registered
/// (docs/attention/gpu.md).
///
/// Errors: c10::ValueError or c10::TypeError. The message is one line that names the argument, the
/// expectation and the value.
///
/// Sources: Clift et al., arXiv 1909.00668; Roy et al., arXiv 2507.02754; sum and mean: Pappone.
NSIMPLEX_API AttentionOutput attention(const at::Tensor& query, at::TensorList keys,
                                       at::TensorList values, const AttentionOptions& options = {});

/// The same function from plain ATen calls, for any dtype and device. Every kernel is compared with
/// it.
NSIMPLEX_API AttentionOutput attention_reference(const at::Tensor& query, at::TensorList keys,
                                                 at::TensorList values,
                                                 const AttentionOptions& options = {});

/// The largest number of elements that attention_weights() returns: 256 MiB in float32.
inline constexpr int64_t kMaxAttentionWeights = int64_t{1} << 26;

/// The weight of every tuple, for small problems: [B, Hq, Tq, T_1, .., T_N], float32, or float64
/// for float64 inputs. It is 0 if a tuple is inadmissible.
///
/// Accepts the options of attention() except augment; reduce and the output scale have no effect.
/// With dropout, these are the weights after dropout. The function consists of ATen calls and is
/// differentiable any number of times. It takes a few times the memory of the result.
///
/// Errors: c10::ValueError above kMaxAttentionWeights elements, and those of attention().
NSIMPLEX_API at::Tensor attention_weights(const at::Tensor& query, at::TensorList keys,
                                          const AttentionOptions& options = {});

/// The weight that a query puts on each key of one axis, summed over the other axes: [B, Hq, Tq,
/// T_axis] in the query's dtype.
///
/// The function calls attention() with reduce = sum, unit vectors as the values of that axis and
/// zeros as the others. So no tuple is stored, and all options and derivatives of the operator
/// work. reduce and the output scale of `options` are not used. Cost: that call, with Dv = T_axis.
NSIMPLEX_API at::Tensor attention_marginals(const at::Tensor& query, at::TensorList keys,
                                            int64_t axis, const AttentionOptions& options = {});

/// The weight that each key of one axis receives, summed over the other axes, all queries and the
/// query heads of its group: [B, Hk, T_axis] in the query's dtype.
///
/// It is the gradient of that axis' values in attention() with reduce = sum and Dv = 1. This takes
/// one forward and one backward pass and O(T) memory. It is differentiable through the reference.
NSIMPLEX_API at::Tensor attention_received(const at::Tensor& query, at::TensorList keys,
                                           int64_t axis, const AttentionOptions& options = {});

/// Floating-point operations of a forward call: 2 (D + Dv) for every query, head and admissible
/// tuple. Windows, key lengths and documents are taken into account, other masks are not. A
/// backward call has three times as many: six products per tuple instead of two. Exponentials and
/// other work outside the matrix products are not counted. O(B Tq N) time.
NSIMPLEX_API double attention_flops(const at::Tensor& query, at::TensorList keys,
                                    at::TensorList values, const AttentionOptions& options = {});

/// Bytes that the CPU kernel needs besides inputs and outputs.
struct AttentionWorkspace {
  int64_t forward_bytes = 0;
  int64_t backward_bytes = 0;
};

/// Workspace of a call and of its backward at the current number of threads. It is zero if the call
/// uses the reference.
NSIMPLEX_API AttentionWorkspace attention_workspace(const at::Tensor& query, at::TensorList keys,
                                                    at::TensorList values,
                                                    const AttentionOptions& options = {});

/// Combines attention results over parts of a set of tuples into the result over the whole set.
///
///     lse = log sum_p exp(lse_p)
///     out = sum_p exp(lse_p - lse) out_p
///
/// The result is exact if no tuple belongs to two parts. For N >= 2 the parts consist of tuples: if
/// one key axis is cut into blocks, each block is a part; if two axes are cut, every pair of blocks
/// is a part. Split keys, decoding and context parallelism are based on this.
///
/// Shapes: outs P >= 1 of [.., Dv], lses P of [..], as attention() returns them. A row without a
/// tuple in some part (lse = -inf) takes nothing from that part. A row without a tuple in any part
/// has out = 0 and lse = -inf. Differentiable in outs and lses any number of times, forward and
/// backward. `out` has the dtype and memory order of outs[0]. All lses have the same dtype, float32
/// or float64, and the sums are computed in it.
///
/// The formula holds for the normalisers softmax and relu. Only one part may contain a sink.
/// Results of sigmoid are simply added, without this function.
///
/// Complexity: P (Dv + 2) operations per row, memory bound.
///
/// Errors: c10::ValueError or c10::TypeError that names the part.
NSIMPLEX_API AttentionOutput merge_attention(at::TensorList outs, at::TensorList lses);

/// Attention with one softmax per face. A face is the set of tuples that share a query and the
/// first N-1 keys.
///
///     e_iJ  = s1 form(q_i, k1_{j1}, .., kN_{jN})
///     A_iJ  = softmax over jN of e_iJ, for every face (i, j1, .., j_{N-1})
///     o_i   = s2 / F_i sum_J A_iJ reduce(v1_{j1}, .., vN_{jN})
///     lse   = log sum over jN of exp(e_iJ), one per face
///
/// with lse [B, Hq, Tq, T_1, .., T_{N-1}] and F_i the number of faces of query i that have an
/// admissible jN. A query without such a face has o_i = 0. A face without an admissible jN has
/// lse = -inf and does not count in the mean. For N = 1 this is attention().
///
/// Shapes, dtypes and options are those of attention() with normalizer = softmax, without augment.
/// Both outputs are differentiable any number of times. The function consists of ATen calls: a
/// forward without gradients takes O(T D) memory besides lse, and one with gradients keeps the
/// tuples.
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

/// Attention of an order between two integers (experimental). Given N keys and values and an order
/// n = N - 1 + a, 0 <= a <= 1, it returns the arguments for attention():
///
///     kN <- (1 - a) 1 + a kN,  vN <- (1 - a) 1 + a vN
///     s1 = D^(-N/2) / ((1 - a) + a D^1/2),  s2 = Dv^-(N-2)/2 / ((1 - a) + a Dv^1/2)
///
/// a = 1 is order N and a = 0 order N - 1, each with its unit scales. At every order between them
/// the sensitivity to inputs of unit root mean square is 1 as well, so the order of a trained model
/// can be scaled. Use it with the product form and reducer. The other keys and values are returned
/// unchanged. Unless mask or distinct ties the axes together, a = 0 gives exactly the output of
/// order N - 1. Its lse is larger by the log of the number of keys that the query sees on the last
/// axis.
///
/// Errors: c10::ValueError for fewer than 2 keys or an order outside [N - 1, N].
NSIMPLEX_API ContinuousOrder continuous_order(at::TensorList keys, at::TensorList values,
                                              double order);

}  // namespace nsimplex
