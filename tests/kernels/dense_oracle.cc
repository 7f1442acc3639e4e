#include "kernels/dense_oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/tuple_hash.h"

namespace nsimplex::kernels::testing {
namespace {

using Real = long double;
using Tuple = std::vector<int64_t>;
using Vector = std::vector<Real>;

constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

// The query and the keys of a tuple, in one piece of memory: there are millions of tuples.
struct Vectors {
  size_t count, dim;
  Vector channels;

  Real operator()(size_t vector, size_t channel) const { return channels[vector * dim + channel]; }
};

// Columns of one chunk; those behind the order stay empty.
using Columns = Real[kMaxOrder + 1][kMaxOrder + 1];

void read_chunk(const Vectors& vectors, size_t first, Columns& columns) {
  for (size_t column = 0; column < vectors.count; ++column) {
    for (size_t row = 0; row < vectors.count; ++row) {
      columns[column][row] = vectors(column, first + row);
    }
  }
}

// The determinant of columns [column, size) over the rows that are not `used`, by its first column.
Real determinant(const Columns& columns, size_t size, size_t column = 0, unsigned used = 0) {
  if (column == size) return 1.0L;
  Real sum = 0.0L, sign = 1.0L;
  for (size_t row = 0; row < size; ++row) {
    if (used & (1u << row)) continue;
    if (columns[column][row] != 0.0L) {
      sum += sign * columns[column][row] * determinant(columns, size, column + 1, used | 1u << row);
    }
    sign = -sign;
  }
  return sum;
}

// sum_a x0_a x1_a .., or the sum of the chunks' determinants with the vectors as columns.
Real form_of(Form form, const Vectors& vectors) {
  Real sum = 0.0L;
  if (form == Form::product) {
    for (size_t a = 0; a < vectors.dim; ++a) {
      Real product = 1.0L;
      for (size_t u = 0; u < vectors.count; ++u) product *= vectors(u, a);
      sum += product;
    }
    return sum;
  }
  Columns columns;
  for (size_t first = 0; first < vectors.dim; first += vectors.count) {
    read_chunk(vectors, first, columns);
    sum += determinant(columns, vectors.count);
  }
  return sum;
}

// The form is linear in each vector: its derivative along channel a of vector t is the form with a
// unit vector there (of which only the chunk, or channel, that holds a matters).
Real form_derivative(Form form, const Vectors& vectors, size_t t, size_t a) {
  if (form == Form::product) {
    Real others = 1.0L;
    for (size_t u = 0; u < vectors.count; ++u) others *= u == t ? 1.0L : vectors(u, a);
    return others;
  }
  const size_t size = vectors.count, first = a / size * size;
  Columns columns;
  read_chunk(vectors, first, columns);
  std::fill_n(columns[t], size, 0.0L);
  columns[t][a - first] = 1.0L;
  return determinant(columns, size);
}

// One query of a problem.
template <class T>
struct Query {
  const DenseProblem<T>& p;
  int64_t b, h, i, kv;

  Query(const DenseProblem<T>& p, int64_t row)
      : p(p),
        b(row / p.queries / p.heads),
        h(row / p.queries % p.heads),
        i(row % p.queries),
        kv(h / (p.heads / p.kv_heads)) {}

  bool sees(int m, int64_t j) const {
    const Visibility& v = p.axes[m].visible;
    const int64_t position = i + v.offset;
    if (v.left >= 0 && j <= position - v.left) return false;
    if (v.right >= 0 && j > position + v.right) return false;
    if (v.causal && j > position) return false;
    if (v.lengths && j >= v.lengths[b]) return false;
    if (v.document_begin && (j < v.document_begin[i] || j >= v.document_end[i])) return false;
    if (p.axes[m].mask && !p.axes[m].mask[b * v.length + j]) return false;
    return p.distinct != Distinct::with_query || j != position;
  }

  int64_t place(const TuplePlaces& places, const Tuple& tuple) const {
    int64_t at = places.row(b, h, i);
    for (int m = 0; m < p.order; ++m) at += tuple[m] * places.axis_stride[m];
    return at;
  }

  bool admits(const Tuple& tuple) const {
    if (p.distinct != Distinct::none) {
      for (int m = 0; m < p.order; ++m) {
        for (int n = 0; n < m; ++n) {
          if (tuple[m] == tuple[n]) return false;
        }
      }
    }
    return std::all_of(p.mask, p.mask + p.masks, [&](const TupleMask<T>& mask) {
      const int64_t at = place(mask, tuple);
      return mask.admissible ? mask.admissible[at] : mask.logits[at] > -kInfinity;
    });
  }

  std::vector<Tuple> tuples() const {
    std::vector<Tuple> all{{}};
    for (int m = 0; m < p.order; ++m) {
      std::vector<Tuple> longer;
      for (const Tuple& tuple : all) {
        for (int64_t j = 0; j < p.axes[m].visible.length; ++j) {
          if (!sees(m, j)) continue;
          longer.push_back(tuple);
          longer.back().push_back(j);
        }
      }
      all = std::move(longer);
    }
    std::erase_if(all, [&](const Tuple& tuple) { return !admits(tuple); });
    return all;
  }

  Vectors vectors(const Tuple& tuple) const {
    Vectors all{static_cast<size_t>(p.order + 1), static_cast<size_t>(p.dim), {}};
    all.channels.reserve(all.count * all.dim);
    const auto append = [&](const T* row) {
      for (int64_t a = 0; a < p.dim; ++a) {
        all.channels.push_back(static_cast<double>(to_accum(row[a])));
      }
    };
    append(p.query.row(b, h, i));
    for (int m = 0; m < p.order; ++m) append(p.axes[m].key.row(b, kv, tuple[m]));
    return all;
  }

  Real before_cap(const Tuple& tuple) const {
    return static_cast<Real>(p.logit_scale) * form_of(p.form, vectors(tuple));
  }

  // The derivative of a soft cap, c tanh(x / c).
  Real cap_slope(const Tuple& tuple) const {
    if (p.softcap == 0.0) return 1.0L;
    const Real y = std::tanh(before_cap(tuple) / p.softcap);
    return 1.0L - y * y;
  }

  Real logit(const Tuple& tuple) const {
    Real form = before_cap(tuple);
    if (p.softcap > 0.0) form = p.softcap * std::tanh(form / p.softcap);
    for (int m = 0; m < p.order && p.slopes; ++m) {
      const int64_t away = std::abs(i + p.axes[m].visible.offset - tuple[m]);
      form -= static_cast<Real>(p.slopes[h]) * static_cast<Real>(away);
    }
    for (int k = 0; k < p.masks; ++k) {
      if (p.mask[k].logits) form += static_cast<Real>(p.mask[k].logits[place(p.mask[k], tuple)]);
    }
    return form;
  }

  // Dropout's factor of a weight.
  Real kept(const Tuple& tuple) const {
    if (p.dropout.p == 0.0) return 1.0L;
    uint32_t key = hash_row(p.dropout.seed, b * p.heads + h, i);
    for (int m = 0; m < p.order; ++m) key ^= hash_key(m, tuple[m]);
    return keeps_tuple(key, drop_threshold(p.dropout.p)) ? 1.0L / (1.0L - p.dropout.p) : 0.0L;
  }

  // One channel of the reduced values, without axis `skip`.
  Real value(const Tuple& tuple, int64_t c, int skip = -1) const {
    const bool product = p.reduce == ValueReduce::product;
    Real result = product ? 1.0L : 0.0L;
    for (int m = 0; m < p.order; ++m) {
      if (m == skip) continue;
      const Real value = static_cast<double>(to_accum(p.axes[m].value.row(b, kv, tuple[m])[c]));
      result = product ? result * value : result + value;
    }
    return p.reduce == ValueReduce::mean ? result / p.order : result;
  }
};

// Weights before dropout and their derivatives by the logits, but for what all tuples of the row
// have in common.
struct Weights {
  Vector weight, slope;
  Real lse = 0.0L, sink_weight = 0.0L;
  bool shared = true;  // the normaliser depends on all logits
};

Weights normalise(const Vector& logits, Normalizer normalizer, Real sink) {
  Weights result;
  Real total = 0.0L;
  switch (normalizer) {
    case Normalizer::sigmoid:
      result.shared = false;
      for (const Real x : logits) {
        result.weight.push_back(1.0L / (1.0L + std::exp(-x)));
        result.slope.push_back(result.weight.back() * (1.0L - result.weight.back()));
      }
      return result;
    case Normalizer::relu:
      for (const Real x : logits) total += std::max(x, 0.0L);
      result.lse = std::log(total);
      for (const Real x : logits) {
        result.weight.push_back(total > 0.0L ? std::max(x, 0.0L) / total : 0.0L);
        result.slope.push_back(total > 0.0L && x > 0.0L ? 1.0L / total : 0.0L);
      }
      return result;
    case Normalizer::softmax:
      sink = -kInfinity;
      [[fallthrough]];
    case Normalizer::softmax_sink:
      Real largest = sink;
      for (const Real x : logits) largest = std::max(largest, x);
      for (const Real x : logits) total += std::exp(x - largest);
      total += std::exp(sink - largest);
      for (const Real x : logits) result.weight.push_back(std::exp(x - largest) / total);
      result.slope = result.weight;
      result.sink_weight = std::exp(sink - largest) / total;
      result.lse = largest + std::log(total);
      return result;
  }
  return result;
}

}  // namespace

template <class T>
int64_t place_gradient(const DenseProblem<T>& p, const TuplePlaces& mask, TuplePlaces& places) {
  int64_t count = 1;
  for (int m = p.order; m-- > 0;) {
    if (mask.axis_stride[m] == 0) continue;
    places.axis_stride[m] = count;
    count *= p.axes[m].visible.length;
  }
  places.query_stride = count;
  places.head_stride = count * p.queries;
  places.batch_stride = places.head_stride * p.heads;
  return places.batch_stride * p.batch;
}

template <class T>
DenseOracle dense_oracle(const DenseProblem<T>& p, const Rows<const T>* grad_out,
                         const Accum<T>* grad_lse) {
  DenseOracle result;
  const int64_t rows = p.batch * p.heads * p.queries;
  result.out.assign(rows * p.value_dim, 0.0);
  result.lse.assign(rows, -std::numeric_limits<double>::infinity());
  result.grad_query.assign(rows * p.dim, 0.0);
  if (p.sink) result.grad_sink.assign(p.heads, 0.0);
  TuplePlaces mask_places[kMaxMasks];
  for (int k = 0; k < p.masks; ++k) {
    if (!p.mask[k].logits) continue;
    result.grad_masks.emplace_back(place_gradient(p, p.mask[k], mask_places[k]), 0.0);
  }
  for (int m = 0; m < p.order; ++m) {
    const int64_t keys = p.batch * p.kv_heads * p.axes[m].visible.length;
    result.grad_key.emplace_back(keys * p.dim, 0.0);
    result.grad_value.emplace_back(keys * p.value_dim, 0.0);
  }
  for (int64_t row = 0; row < rows; ++row) {
    const Query<T> query(p, row);
    const std::vector<Tuple> tuples = query.tuples();
    if (tuples.empty()) continue;
    Vector logits, kept;
    for (const Tuple& tuple : tuples) {
      logits.push_back(query.logit(tuple));
      kept.push_back(query.kept(tuple));
      result.smallest_logit =
          std::min(result.smallest_logit, static_cast<double>(std::abs(logits.back())));
    }
    const Real sink = p.sink ? static_cast<Real>(p.sink[query.h]) : -kInfinity;
    const Weights weights = normalise(logits, p.normalizer, sink);
    result.lse[row] = static_cast<double>(weights.lse);

    Vector out(p.value_dim, 0.0L), grad_weight(tuples.size(), 0.0L);
    Real common = 0.0L;  // what the shared normaliser takes from every tuple's gradient: delta
    for (size_t t = 0; t < tuples.size(); ++t) {
      for (int64_t c = 0; c < p.value_dim; ++c) {
        const Real value = static_cast<Real>(p.output_scale) * query.value(tuples[t], c) * kept[t];
        out[c] += weights.weight[t] * value;
        if (grad_out) {
          grad_weight[t] +=
              static_cast<double>(to_accum(grad_out->row(query.b, query.h, query.i)[c])) * value;
        }
      }
      common += weights.weight[t] * grad_weight[t];
    }
    for (int64_t c = 0; c < p.value_dim; ++c) {
      result.out[row * p.value_dim + c] = static_cast<double>(out[c]);
    }
    if (!grad_out || weights.lse == -kInfinity) continue;
    if (grad_lse) common -= grad_lse[row];
    if (!weights.shared) common = 0.0L;
    if (p.sink) result.grad_sink[query.h] -= static_cast<double>(weights.sink_weight * common);

    for (size_t t = 0; t < tuples.size(); ++t) {
      const Tuple& tuple = tuples[t];
      const Vectors vectors = query.vectors(tuple);
      const Real grad_logit = weights.slope[t] * (grad_weight[t] - common);
      size_t additive = 0;
      for (int k = 0; k < p.masks; ++k) {
        if (!p.mask[k].logits) continue;
        result.grad_masks[additive++][query.place(mask_places[k], tuple)] +=
            static_cast<double>(grad_logit);
      }
      const Real grad_form = static_cast<Real>(p.logit_scale) * query.cap_slope(tuple) * grad_logit;
      for (int64_t a = 0; a < p.dim && grad_form != 0.0L; ++a) {
        for (int target = -1; target < p.order; ++target) {  // -1: the query
          const Real share = grad_form * form_derivative(p.form, vectors, target + 1, a);
          if (target < 0) {
            result.grad_query[row * p.dim + a] += static_cast<double>(share);
            continue;
          }
          const int64_t at =
              (query.b * p.kv_heads + query.kv) * p.axes[target].visible.length + tuple[target];
          result.grad_key[target][at * p.dim + a] += static_cast<double>(share);
        }
      }
      for (int64_t c = 0; c < p.value_dim; ++c) {
        const Real share =
            static_cast<Real>(p.output_scale) * weights.weight[t] * kept[t] *
            static_cast<double>(to_accum(grad_out->row(query.b, query.h, query.i)[c]));
        for (int m = 0; m < p.order; ++m) {
          const int64_t at =
              (query.b * p.kv_heads + query.kv) * p.axes[m].visible.length + tuple[m];
          Real factor = 1.0L;
          if (p.reduce == ValueReduce::product) factor = query.value(tuple, c, m);
          if (p.reduce == ValueReduce::mean) factor = 1.0L / p.order;
          result.grad_value[m][at * p.value_dim + c] += static_cast<double>(share * factor);
        }
      }
    }
  }
  return result;
}

template int64_t place_gradient(const DenseProblem<float>&, const TuplePlaces&, TuplePlaces&);
template DenseOracle dense_oracle(const DenseProblem<float>&, const Rows<const float>*,
                                  const float*);
template DenseOracle dense_oracle(const DenseProblem<double>&, const Rows<const double>*,
                                  const double*);
template DenseOracle dense_oracle(const DenseProblem<Bf16>&, const Rows<const Bf16>*, const float*);
template DenseOracle dense_oracle(const DenseProblem<Fp16>&, const Rows<const Fp16>*, const float*);

}  // namespace nsimplex::kernels::testing
