// The calls of the equivariant kernels as plain structs: class sums, attention by pairs or tables,
// and random features.

#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

// Plain description of the work on the rows of a class before and after its loops over pairs and
// tables. No ownership. Rows are [heads, channels], `stride` apart if others lie between them.

namespace nsimplex::kernels {

/// to[r] += the rows of products with the numbers places[r].
template <class T>
struct SeenRows {
  int64_t rows = 0, columns = 0, width = 0;
  const T* products = nullptr;      ///< [.., width]
  const int32_t* places = nullptr;  ///< [rows, columns]: a row of products or -1
  T* to = nullptr;                  ///< [rows, width]
};

/// From the sums over a query's keys to the class's result, and to the gradients of the sums.
template <class T>
struct ClassOutput {
  int64_t rows = 0, heads = 0, values = 0;
  const double* sums = nullptr;     ///< [rows, heads, values + 1]: of w v and of w
  const int32_t* counts = nullptr;  ///< [rows]: keys of a query; without: those with no w have none
  bool normalise = true;            ///< divide by the sum of w, else times `factor`
  double factor = 1;
  T* out = nullptr;
  int64_t out_stride = 0;

  /// Backward, if there is a gradient of `out`.
  const T* grad_out = nullptr;
  int64_t grad_out_stride = 0;
  bool weights_are_shares = false;  ///< w is already divided by its sum
  T* grad = nullptr;                ///< [rows, heads, values + 1]

  /// If tables left sums of (g_out . v) k and of k, these become the gradient of the query.
  int64_t features = 0;
  double* grad_query = nullptr;      ///< [rows, heads, features]
  const double* key_sums = nullptr;  ///< [rows, heads, features]
};

}  // namespace nsimplex::kernels

// Plain description of the sums of an equivariant layer over lists of tuples. No ownership;
// matrices are contiguous, one row after the other. Sums run in double.

namespace nsimplex::kernels {

/// to[s] = sum of from[rows[e]] over offsets[s] <= e < offsets[s + 1].
template <class From, class To>
struct SegmentSums {
  const int32_t* offsets = nullptr;  ///< [segments + 1]
  const int32_t* rows = nullptr;     ///< [entries]
  int64_t segments = 0, entries = 0, channels = 0;
  const From* from = nullptr;  ///< [.., channels]
  To* to = nullptr;            ///< [segments, channels]
};

/// One term: a class, a look-up of the same output row, and the coefficient of the look-up.
struct ClassTerm {
  int32_t to_class, lookup, coefficient;
};

/// Outputs of one pattern: the sums of their classes from their look-ups, or the transpose.
struct ClassPart {
  int64_t rows = 0, classes = 0, lookups = 0, terms = 0;
  const ClassTerm* term = nullptr;  ///< [terms], by class; of the transpose by look-up
  const int32_t* lookup = nullptr;  ///< [rows, lookups]: a source or -1
  const int32_t* count = nullptr;   ///< [rows, classes]; null: no division
};

/// sums[j, c] = sum of coefficient * source(lookup[j, t]) over the terms of class c, divided by
/// count[j, c]; 0 where that is 0. A source below `sources` is a row of features, else of tables.
template <class T>
struct ClassSums : ClassPart {
  int64_t channels = 0, sources = 0;
  const T* features = nullptr;     ///< [sources, channels]
  const double* tables = nullptr;  ///< [groups, channels]
  T* sums = nullptr;               ///< [rows, classes, channels]
};

/// The transpose: grad_lookups[j, t] = sum of coefficient / count[j, c] * grad_sums[j, c] over the
/// terms of look-up t, if lookup[j, t] names a source. Other entries are not written.
template <class T>
struct ClassSumsTransposed : ClassPart {
  int64_t channels = 0;
  const T* grad_sums = nullptr;  ///< [rows, classes, channels]
  T* grad_lookups = nullptr;     ///< [rows, lookups, channels]
};

}  // namespace nsimplex::kernels

// Plain description of the loops of attention between two lists of tuples. Matrix products and
// elementwise work are done outside. No ownership.
//
// Queries and keys meet in groups: all queries of a group see all its keys, except for pairs that
// share a node which they must not share. A query and a key are in at most one common group of a
// relation.

namespace nsimplex::kernels {

struct TupleRelation {
  int64_t groups = 0;
  const int32_t* key_offsets = nullptr;    ///< [groups + 1]
  const int32_t* keys = nullptr;           ///< rows of keys and values, group by group
  const int32_t* query_offsets = nullptr;  ///< [groups + 1]
  const int32_t* queries = nullptr;        ///< rows of queries, group by group
};

/// Rows of heads x width channels, `stride` apart, the heads one after the other.
template <class T>
struct HeadRows {
  const T* data = nullptr;
  int64_t stride = 0, width = 0;

  const T* row(int64_t row, int64_t head) const { return data + row * stride + head * width; }
};

enum class PairWeight {
  softmax,  ///< 2^(q . k - shift of the query)
  product,  ///< q . k
};

inline constexpr int64_t kMaxTupleBlocks = 7;  ///< distinct nodes of a tuple

/// One weight per pair: the sums over the keys of a query, and their gradients. Sums are in double
/// over chunks of keys, which are summed in T.
template <class T>
struct PairAttention {
  TupleRelation relation;
  PairWeight weight = PairWeight::softmax;
  int64_t heads = 0;
  HeadRows<T> query, key, value;  ///< a softmax's query times log2(e) and the scale

  /// A pair is skipped if one of these nodes of its key is one of these nodes of its query.
  int64_t key_only = 0, query_only = 0;
  const int32_t* key_nodes[kMaxTupleBlocks] = {};    ///< [rows of keys] each
  const int32_t* query_nodes[kMaxTupleBlocks] = {};  ///< [rows of queries] each

  int64_t largest_group = INT64_MAX;  ///< largest number of keys of the groups that count

  /// Forward: read and written back, so that the pairs of several relations add up.
  T* shift = nullptr;      ///< [queries, heads]: the running maximum of a softmax
  double* sums = nullptr;  ///< [queries, heads, value width + 1]: of w v and of w

  /// Backward: w has the gradient g . (v, 1). A softmax's shift is the logarithm of its sum.
  const T* grad = nullptr;       ///< [queries, heads, value width + 1]
  double* grad_query = nullptr;  ///< [queries, heads, width], added to; so are the next two
  double* grad_key = nullptr;
  double* grad_value = nullptr;
};

/// If at least this number of rows makes or meets the table of a group, the table is made in
/// advance, in blocks of at most this number of rows and once for all rows that meet it. So a
/// single thread need not do this work alone.
inline constexpr int64_t kLargeTableGroup = 512;
inline constexpr bool is_large_table(int64_t making, int64_t reading) {
  return making > 0 && std::max(making, reading) > kLargeTableGroup;
}

/// Tables of the groups of a relation, added or subtracted.
struct TableMember {
  TupleRelation relation;
  double sign = 1;
  const int32_t* groups = nullptr;  ///< of each group of rows the relation's, or -1; null: the same

  int64_t group_of(int64_t rows) const { return groups == nullptr ? rows : groups[rows]; }
};

/// The weight q . k summed without pairs. Groups of keys have tables of k (v, 1)^T, which every
/// query of a group meets; several tables are added up. For keys the roles are exchanged.
/// Everything is in double, since tables are subtracted from each other.
template <class T>
struct TableAttention {
  int64_t groups = 0;                ///< of rows of the written side
  const int32_t* offsets = nullptr;  ///< [groups + 1]
  const int32_t* rows = nullptr;
  std::span<const TableMember> members;
  int64_t heads = 0;
  HeadRows<T> query, key, value;
  const uint8_t* skip = nullptr;  ///< [queries]: those that are left out

  /// Queries: sums as in PairAttention. With gradients g_out of a query's result, also the parts of
  /// the query's gradient, which is computed once its sum of w is known; one table serves both.
  double* sums = nullptr;
  HeadRows<T> grad_out;          ///< [queries]
  double* grad_query = nullptr;  ///< [queries, heads, width]: of (g_out . v) k
  double* key_sums = nullptr;    ///< [queries, heads, width]: of k

  /// Keys: as in PairAttention.
  const T* grad = nullptr;
  double* grad_key = nullptr;
  double* grad_value = nullptr;
};

}  // namespace nsimplex::kernels

// Plain description of random features of queries and keys, of every head. No ownership.

namespace nsimplex::kernels {

enum class HeadFeatureMap {
  relu,         ///< phi(x)_f = max(x . w_f, 0) + floor
  exponential,  ///< phi(x)_f = exp(x . w_f - half_square |x|^2 - shift) + floor
};

/// The output. Features of the rectifier are written at once. For exponentials, the first pass
/// writes exponents without the shift, and the largest exponent of each head row in its place; a
/// second pass writes the rest.
template <class T>
struct HeadFeatures {
  HeadFeatureMap map = HeadFeatureMap::relu;
  int64_t rows = 0, heads = 0, features = 0;
  HeadRows<T> x;
  const T* directions = nullptr;  ///< [width of x, padded_channels(features)], zero behind the last
  T floor = 0;
  T* to = nullptr;  ///< [rows, heads, features]
  T half_square = 0;
  T* shift = nullptr;  ///< [rows, heads], for exponentials: then all exponents are at most 0
};

/// The gradient of x from that of its features. The shift of exponentials counts as a constant.
template <class T>
struct HeadFeaturesBackward {
  HeadFeatureMap map = HeadFeatureMap::relu;
  int64_t rows = 0, heads = 0, features = 0, width = 0;
  const T* of_x = nullptr;        ///< [rows, heads, features]
  const T* directions = nullptr;  ///< [features, padded_channels(width)], zero behind the last
  T floor = 0;
  const double* grad = nullptr;  ///< [rows, heads, features]
  T* to = nullptr;
  int64_t to_stride = 0;
  HeadRows<T> x;      ///< of exponentials
  T half_square = 0;  ///< of exponentials
};

}  // namespace nsimplex::kernels
