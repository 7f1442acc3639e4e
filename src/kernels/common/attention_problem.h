// A dense attention call as plain structs: strided arrays, visible keys, mask, dropout and options.

#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/half.h"
#include "kernels/common/softmax_state.h"

// Plain description of one dense N-simplicial attention call, shared by every device. No ownership:
// all pointers belong to the caller and outlive the call. Strides are in elements; channels are
// contiguous. T is the storage type: double, float, Bf16 or Fp16.

namespace nsimplex::kernels {

inline constexpr int kMaxOrder = 8;

/// View of a [batch, head, row, channel] array whose channel stride is 1.
template <class T>
struct Rows {
  T* data = nullptr;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;

  T* row(int64_t batch, int64_t head, int64_t index) const {
    return data + batch * batch_stride + head * head_stride + index * row_stride;
  }
};

/// Half-open interval of key positions; empty when end <= begin.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return std::max<int64_t>(end - begin, 0); }
};

/// Which keys of an axis a query may see, by position: an interval. From one query to the next,
/// neither end decreases.
struct Visibility {
  int64_t length = 0;             ///< T_m, of the tensor
  int64_t offset = 0;             ///< T_m - Tq: bottom-right alignment
  int64_t left = -1, right = -1;  ///< window; -1: unbounded; left counts the query's own position
  bool causal = false;
  const int64_t* lengths = nullptr;  ///< [batch] valid keys, or null; masks only
  /// Packed documents, or null: [queries] bounds of each query's document, the same for all axes
  /// and batch entries. The offset is then 0.
  const int64_t *document_begin = nullptr, *document_end = nullptr;
  /// Positions of the queries among the keys, [batch, position_stride], never falling from one query
  /// to the next; or null: query i of every batch entry is at i + offset.
  const int64_t* positions = nullptr;
  int64_t position_stride = 0;

  int64_t position(int64_t batch, int64_t query) const {
    return positions ? positions[batch * position_stride + query] : query + offset;
  }

  Range of(int64_t batch, int64_t query) const {
    const int64_t position = this->position(batch, query);
    Range range{0, length};
    if (left >= 0) range.begin = std::max(range.begin, position - left + 1);
    if (right >= 0) range.end = std::min(range.end, position + right + 1);
    if (causal) range.end = std::min(range.end, position + 1);
    if (lengths) range.end = std::min(range.end, lengths[batch]);
    if (document_begin) {
      range.begin = std::max(range.begin, document_begin[query]);
      range.end = std::min(range.end, document_end[query]);
    }
    return range;
  }

  /// Of the queries [0, count), those that see at least one key. With documents or positions this is
  /// an interval that contains them: a document's last queries may see nothing.
  Range queries(int64_t batch, int64_t count) const {
    const int64_t valid = lengths ? std::min(length, lengths[batch]) : length;
    Range range{0, count};
    if (valid <= 0 || (left == 0) || (left > 0 && right >= 0 && left + right <= 0)) return {0, 0};
    if (positions) return range;
    if (causal) range.begin = std::max(range.begin, -offset);
    if (right >= 0) range.begin = std::max(range.begin, -offset - right);
    if (left >= 0) range.end = std::min(range.end, valid + left - 1 - offset);
    return range;
  }
};

/// The interval of keys that `queries` may see. Without positions, the first and the last of the
/// queries must see some key.
inline Range visible_keys(const Visibility& visible, int64_t batch, Range queries) {
  if (queries.size() == 0) return {0, 0};
  return {visible.of(batch, queries.begin).begin, visible.of(batch, queries.end - 1).end};
}

/// The same for any of the batch entries [0, batch). Key lengths only make a range smaller, so they are
/// left out, and without positions all entries see the same keys.
inline Range visible_keys_of_batch(Visibility visible, int64_t batch, Range queries) {
  visible.lengths = nullptr;
  Range range = visible_keys(visible, 0, queries);
  for (int64_t b = 1; b < batch && visible.positions; ++b) {
    const Range entry = visible_keys(visible, b, queries);
    if (entry.size() == 0) continue;
    range = range.size() == 0
                ? entry
                : Range{std::min(range.begin, entry.begin), std::max(range.end, entry.end)};
  }
  return range;
}

enum class ValueReduce { product, sum, mean };

/// How a query and a tuple of keys give a logit (see the definition in docs/attention/dense.md).
enum class Form { product, determinant };

/// How the logits x of a query's tuples become weights.
enum class Normalizer {
  softmax,       ///< e^x / sum e^x
  softmax_sink,  ///< e^x / (e^sink + sum e^x)
  sigmoid,       ///< 1 / (1 + e^-x); lse is 0
  relu           ///< max(x, 0) / sum max(x, 0); lse is the logarithm of that sum
};

/// Whether weights are exponentials over a common sum, which a softmax state represents.
constexpr bool exponential(Normalizer normalizer) {
  return normalizer == Normalizer::softmax || normalizer == Normalizer::softmax_sink;
}

/// Which tuples with equal positions are dropped.
enum class Distinct {
  none,
  axes,       ///< j_m == j_m' for some m != m'
  with_query  ///< these, and those with j_m equal to the query's position for some m
};

template <class T>
struct DenseAxis {
  Rows<const T> key, value;  ///< [batch, kv_heads, length, dim or value_dim]
  Visibility visible;
  const bool* mask = nullptr;  ///< [batch, length], contiguous: true takes part; null: all do
};

/// Places over [batch, heads, queries, T_1, .., T_N]. Stride 0 broadcasts.
struct TuplePlaces {
  int64_t batch_stride = 0, head_stride = 0, query_stride = 0;
  int64_t axis_stride[kMaxOrder] = {};

  int64_t row(int64_t batch, int64_t head, int64_t query) const {
    return batch * batch_stride + head * head_stride + query * query_stride;
  }
};

/// A mask over tuples: booleans (true: admissible) or logits to add (minus infinity: inadmissible).
/// A mask over the pairs of the query and one axis has stride 0 on the others.
template <class T>
struct TupleMask : TuplePlaces {
  const bool* admissible = nullptr;
  const Accum<T>* logits = nullptr;
};

/// Of the whole tuples and, per axis, of pairs.
inline constexpr int kMaxMasks = kMaxOrder + 1;

/// Where the gradient of a mask is added, in places of its own. Null: not wanted.
template <class R>
struct TupleGradient : TuplePlaces {
  R* sum = nullptr;
};

/// Dropout of tuples after normalisation: see tuple_hash.h. p = 0: none.
struct Dropout {
  double p = 0.0;
  uint64_t seed = 0;
};

template <class T>
struct DenseProblem {
  int order = 1;
  Form form = Form::product;
  ValueReduce reduce = ValueReduce::product;
  Normalizer normalizer = Normalizer::softmax;
  Distinct distinct = Distinct::none;
  Dropout dropout;
  int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, dim = 0, value_dim = 0;
  double logit_scale = 1.0, output_scale = 1.0;
  double softcap = 0.0;  ///< c: a logit x becomes c tanh(x / c), before the mask; 0: none
  Rows<const T> query;   ///< [batch, heads, queries, dim]
  DenseAxis<T> axes[kMaxOrder];
  int masks = 0;
  TupleMask<T> mask[kMaxMasks];    ///< the first `masks` of them
  const Accum<T>* sink = nullptr;  ///< [heads], with softmax_sink
  /// [heads]: the sum over the axes of |position - j_m|, times this, is subtracted; or null
  const Accum<T>* slopes = nullptr;

  /// Whether a query sees a key on every axis. (A mask may still leave it without a tuple.)
  bool active(int64_t entry, int64_t query) const {
    for (int m = 0; m < order; ++m) {
      if (axes[m].visible.of(entry, query).size() == 0) return false;
    }
    return true;
  }

  /// From the first active query of a batch entry to the last. Except for documents, all queries
  /// between them are active.
  Range active_queries(int64_t entry) const {
    Range range{0, queries};
    for (int m = 0; m < order; ++m) {
      const Range seeing = axes[m].visible.queries(entry, queries);
      range = {std::max(range.begin, seeing.begin), std::min(range.end, seeing.end)};
    }
    while (range.size() > 0 && !active(entry, range.begin)) ++range.begin;
    while (range.size() > 0 && !active(entry, range.end - 1)) --range.end;
    return range.size() > 0 ? range : Range{0, 0};
  }
};

template <class T>
struct DenseForward : DenseProblem<T> {
  Rows<T> out;              ///< [batch, heads, queries, value_dim]
  Accum<T>* lse = nullptr;  ///< [batch, heads, queries], contiguous; natural log

  /// [batch, heads, queries]: written instead of out and lse, for the rows whose lse is already
  /// known to be large. Other rows are skipped.
  SoftmaxState<Accum<T>>* states = nullptr;
  const Accum<T>* known_lse = nullptr;

  /// Whether to compute the row at this place of lse.
  bool wants(int64_t statistic) const { return !states || is_large_lse(known_lse[statistic]); }
};

template <class T>
struct DenseBackward : DenseProblem<T> {
  Rows<const T> out, grad_out;
  const Accum<T>* lse = nullptr;
  const Accum<T>* grad_lse = nullptr;  ///< null: zero
  /// [batch, heads, queries], for the rows whose lse is large; null: there are none
  const SoftmaxState<Accum<T>>* states = nullptr;
  Rows<T> grad_query;  ///< null data pointer: not wanted (here and below)
  Rows<T> grad_key[kMaxOrder], grad_value[kMaxOrder];
  Accum<T>* grad_sink = nullptr;  ///< [heads]
  TupleGradient<Accum<T>> grad_mask[kMaxMasks];
  int mask_gradients = 0;  ///< how many of them; 0: none is wanted
};

}  // namespace nsimplex::kernels
