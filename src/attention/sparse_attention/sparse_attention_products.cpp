// One set of keys per query, by products of matrices over all queries of a chunk. Devices without a
// kernel of their own use it. The rows of the sets are gathered. The logits of a query are then the
// product of [G k^(N-1), D], query times leading keys, and [D, k], the keys of the last axis.
//
// Nothing depends on values, so the CPU does not wait for the device. Rows are added in the order
// of sorted places, so two calls give the same bits.

#include <ATen/ATen.h>

#include <algorithm>

#include "attention/common/attention_normalizer.h"
#include "attention/sparse_attention/sparse_attention_reference.h"
#include "support/infinity.h"

namespace nsimplex::sparse {
namespace {

using at::Tensor;

// The call in the dtype of the computation. B batch entries, H key heads, G query heads per key
// head, c queries per chunk, k places per set, L = k^(N-1) leading tuples.
class Products {
 public:
  explicit Products(const Call& call)
      : call_(call),
        settings_(settings_of(call)),
        type_(dense::accumulate_type(call.query.scalar_type())),
        batch_(call.query.size(0)),
        heads_(call.keys[0].size(1)),
        queries_(call.query.size(2)),
        places_(call.indices.size(3)) {
    query_ = by_query(call.query) * settings_.scale.logit;
    for (int m = 0; m < order(); ++m) {
      keys_.push_back(call.keys[m].to(type_).flatten(0, 2));
      values_.push_back(call.values[m].to(type_).flatten(0, 2));
    }
  }

  int order() const { return settings_.order; }
  const Settings& settings() const { return settings_; }
  at::ScalarType type() const { return type_; }
  int64_t queries() const { return queries_; }

  /// [B, Hq, Tq, ..] -> [B, H, Tq, G, ..]
  Tensor by_query(const Tensor& tensor) const {
    return tensor.to(type_).unflatten(1, {heads_, -1}).transpose(2, 3);
  }
  /// The inverse of by_query().
  Tensor by_head(const std::vector<Tensor>& chunks) const {
    return at::cat(chunks, 2).transpose(2, 3).flatten(1, 2);
  }

  int64_t chunk() const {
    int64_t row = batch_ * call_.query.size(1) *
                  std::max({call_.query.size(3), call_.values[0].size(3), places_, int64_t{1}});
    for (int m = 1; m < order(); ++m) row *= std::max<int64_t>(places_, 1);
    return std::max<int64_t>(kDeviceChunkElements / std::max<int64_t>(row, 1), 1);
  }

  Tensor query(int64_t first, int64_t count) const { return query_.narrow(2, first, count); }
  at::TensorList keys() const { return keys_; }
  at::TensorList values() const { return values_; }

  /// Keys of some queries, [B, H, c, k]; -1 for none.
  Tensor sets(int64_t first, int64_t count) const {
    const Tensor sets = call_.indices.narrow(2, first, count).to(at::kLong);
    return sets.unsqueeze(2)
        .expand({batch_, -1, heads_ / settings_.list_groups, -1, -1})
        .flatten(1, 2);
  }

  /// Places of an axis' keys among its rows of all entries and heads, [B H c k].
  Tensor rows(const Tensor& sets, int axis) const {
    const Tensor first = at::arange(batch_ * heads_, sets.options()) * call_.keys[axis].size(2);
    return (sets.clamp_min(0) + first.view({batch_, heads_, 1, 1})).flatten();
  }

  /// Zeros for the gradients of the rows of each axis.
  static std::vector<Tensor> totals(at::TensorList rows) {
    std::vector<Tensor> totals;
    for (const Tensor& each : rows) totals.push_back(at::zeros_like(each));
    return totals;
  }

  /// Rows of an axis as [B, H, T, channels].
  Tensor unflattened(const Tensor& rows, int axis) const {
    return rows.view({batch_, heads_, call_.keys[axis].size(2), rows.size(1)});
  }

 private:
  const Call& call_;
  const Settings settings_;
  const at::ScalarType type_;
  const int64_t batch_, heads_, queries_, places_;
  Tensor query_;                       // [B, H, Tq, G, D], times s1
  std::vector<Tensor> keys_, values_;  // [B H T, channels]
};

// The product over all leading axes except `without`, [B, H, c, k, .., k, channels]; undefined if
// there is none.
Tensor leading_product(const std::vector<Tensor>& rows, int without) {
  const int leading = static_cast<int>(rows.size()) - 1;
  Tensor product;
  for (int m = 0; m < leading; ++m) {
    if (m == without) continue;
    Tensor factor = rows[m];  // its k at dimension 3 + m
    for (int other = 0; other < m; ++other) factor = factor.unsqueeze(3);
    for (int other = m + 1; other < leading; ++other) factor = factor.unsqueeze(-2);
    product = product.defined() ? product * factor : factor;
  }
  return product;
}

// The data that the passes share for one chunk.
class Chunk {
 public:
  Chunk(const Products& products, int64_t first, int64_t count)
      : products_(products), query(products.query(first, count)) {
    const Tensor sets = products.sets(first, count), missing = sets.lt(0);
    for (int m = 0; m < products.order(); ++m) {
      rows.push_back(products.rows(sets, m));
      const auto gather = [&](const Tensor& from) {
        return from.index_select(0, rows[m])
            .view({missing.size(0), missing.size(1), count, missing.size(3), from.size(1)})
            .masked_fill(missing.unsqueeze(-1), 0);
      };
      keys.push_back(gather(products.keys()[m]));
      values.push_back(gather(products.values()[m]));
    }
    leading_keys = flat(leading_product(keys, -1));
    leading_values = flat(leading_product(values, -1));
    combined = with_leading(query, leading_keys);
    const Tensor all = combined.matmul(last(keys).transpose(-1, -2));
    logits = all.unflatten(3, {query.size(3), -1}).masked_fill(none(missing), -kInfinity);
    maximum = logits.amax({-2, -1});
    empty = at::isneginf(maximum);
    maximum = maximum.masked_fill(empty, 0);
  }

  /// [B, H, c, G, ch] times [B, H, c, L, ch]: [B, H, c, G L, ch].
  static Tensor with_leading(const Tensor& of_query, const Tensor& leading) {
    if (!leading.defined()) return of_query;
    return (of_query.unsqueeze(4) * leading.unsqueeze(3)).flatten(3, 4);
  }
  static const Tensor& last(const std::vector<Tensor>& rows) { return rows.back(); }

  /// e^(logit - maximum): [B, H, c, G, L, k].
  Tensor exponentials() const { return (logits - spread(maximum)).exp(); }
  static Tensor spread(const Tensor& of_rows) { return of_rows.unsqueeze(-1).unsqueeze(-1); }

  /// sum over the last axis of weights [.., G, L, k] and rows: [B, H, c, G, L, channels].
  static Tensor weighted(const Tensor& weights, const Tensor& rows) {
    return weights.flatten(3, 4).matmul(rows).unflatten(3, {weights.size(3), -1});
  }
  /// sum over leading tuples of [.., G, L, ch] times their rows: [B, H, c, G, ch].
  static Tensor joined(const Tensor& terms, const Tensor& leading) {
    return leading.defined() ? (terms * leading.unsqueeze(3)).sum(4) : terms.squeeze(4);
  }

  /// Gradients of the leading axes' rows from that of their product, [B, H, c, L, ch].
  std::vector<Tensor> of_leading(const Tensor& grad, const std::vector<Tensor>& all) const {
    std::vector<Tensor> grads;
    const int leading = static_cast<int>(all.size()) - 1;
    at::DimVector shape(grad.sizes().slice(0, 3));
    for (int m = 0; m < leading; ++m) shape.push_back(all[m].size(3));
    shape.push_back(grad.size(-1));
    for (int m = 0; m < leading; ++m) {
      const Tensor others = leading_product(all, m);
      Tensor each = grad.view(shape);
      if (others.defined()) each = each * others;
      at::DimVector dims;
      for (int other = 0; other < leading; ++other) {
        if (other != m) dims.push_back(3 + other);
      }
      grads.push_back(dims.empty() ? each : each.sum(dims));
    }
    return grads;
  }

 private:
  const Products& products_;

  static Tensor flat(const Tensor& product) {
    return product.defined() ? product.flatten(3, -2) : product;
  }

  // Tuples with a missing key, [B, H, c, 1, L, k].
  Tensor none(const Tensor& missing) const {
    Tensor all = missing.unsqueeze(3);
    for (int m = 1; m < products_.order(); ++m) {
      all = all.unsqueeze(3).logical_or(missing.unsqueeze(-1).unsqueeze(-1)).flatten(3, 4);
    }
    return all.unsqueeze(3);
  }

 public:
  Tensor query;                             // [B, H, c, G, D], times s1
  std::vector<Tensor> rows;                 // by axis: places of the keys, [B H c k]
  std::vector<Tensor> keys, values;         // [B, H, c, k, channels]
  Tensor leading_keys, leading_values;      // [B, H, c, L, channels]; undefined for N = 1
  Tensor combined, logits, maximum, empty;  // [.., G L, D], [.., G, L, k], [.., G] twice
};

}  // namespace

bool has_products(const Call& call) {
  const Settings settings = settings_of(call);
  return settings.pattern == TuplePattern::product && settings.form == Form::product &&
         settings.reduce == TupleReduce::product && call.query.size(2) > 0 &&
         call.query.size(0) > 0 && call.indices.size(3) > 0 &&
         std::ranges::all_of(call.keys, [](const Tensor& key) { return key.size(2) > 0; });
}

Output products_forward(const Call& call) {
  const Products products(call);
  std::vector<Tensor> outs, lses;
  const int64_t step = products.chunk();
  for (int64_t first = 0; first < products.queries(); first += step) {
    const Chunk chunk(products, first, std::min(step, products.queries() - first));
    const Tensor weights = chunk.exponentials();
    const Tensor sum = weights.sum({-2, -1}).masked_fill(chunk.empty, 1);
    const Tensor terms = Chunk::weighted(weights, Chunk::last(chunk.values));
    outs.push_back(Chunk::joined(terms, chunk.leading_values) *
                   (products.settings().scale.output / sum).unsqueeze(-1));
    lses.push_back((chunk.maximum + sum.log()).masked_fill(chunk.empty, -kInfinity));
  }
  return {dense::in_order_of(call.query, products.by_head(outs)),
          products.by_head(lses).contiguous()};
}

Gradients products_backward(const BackwardCall& backward) {
  const Call& call = backward.forward;
  const Products products(call);
  const int order = products.order(), leading = order - 1;
  const Tensor none = at::isneginf(backward.lse);
  const Tensor lse = products.by_query(backward.lse.masked_fill(none, 0));
  const dense::DeltaTerm delta =
      dense::DeltaTerm(backward.out, backward.lse, backward.grad_out, backward.grad_lse)
          .by([&](const Tensor& tensor) { return products.by_query(tensor); });
  const Tensor grad =
      products.by_query((backward.grad_out.to(products.type()) * products.settings().scale.output)
                            .masked_fill(none.unsqueeze(-1), 0));
  std::vector<Tensor> grad_query, grad_keys = Products::totals(products.keys()),
                                  grad_values = Products::totals(products.values());
  const int64_t step = products.chunk();
  for (int64_t first = 0; first < products.queries(); first += step) {
    const int64_t count = std::min(step, products.queries() - first);
    const Chunk chunk(products, first, count);
    const auto add = [&](std::vector<Tensor>& totals, int axis, const Tensor& part) {
      const c10::List<std::optional<Tensor>> places({chunk.rows[axis]});
      totals[axis].index_put_(places, part.flatten(0, 3), /*accumulate=*/true);
    };
    const auto rows = [&](const Tensor& tensor) { return tensor.narrow(2, first, count); };
    // e^(logit - lse) would be inaccurate: a large lse has no digits left for the logarithm of a
    // sum.
    const Tensor sum = chunk.exponentials().sum({-2, -1}).masked_fill(chunk.empty, 1);
    const dense::RowNorm norm = dense::with_lse({chunk.maximum, sum.log()}, rows(lse));
    const Tensor weights =
        (chunk.logits - Chunk::spread(norm.maximum) - Chunk::spread(norm.log_sum)).exp();
    const Tensor out = Chunk::with_leading(rows(grad), chunk.leading_values);
    const Tensor of_weights =
        out.matmul(Chunk::last(chunk.values).transpose(-1, -2)).unflatten(3, {weights.size(3), -1});
    const auto spread = [&](const Tensor& tensor) { return Chunk::spread(rows(tensor)); };
    const Tensor of_logits = weights * delta.by(spread).less_delta(of_weights, weights);
    const Tensor of_combined = Chunk::weighted(of_logits, Chunk::last(chunk.keys));
    grad_query.push_back(Chunk::joined(of_combined, chunk.leading_keys) *
                         products.settings().scale.logit);
    add(grad_values, leading, weights.flatten(3, 4).transpose(-1, -2).matmul(out));
    add(grad_keys, leading, of_logits.flatten(3, 4).transpose(-1, -2).matmul(chunk.combined));
    if (leading == 0) continue;
    const Tensor terms = Chunk::weighted(weights, Chunk::last(chunk.values));
    const auto of_values = chunk.of_leading((terms * rows(grad).unsqueeze(4)).sum(3), chunk.values);
    const auto of_keys =
        chunk.of_leading((of_combined * chunk.query.unsqueeze(4)).sum(3), chunk.keys);
    for (int m = 0; m < leading; ++m) {
      add(grad_values, m, of_values[m]);
      add(grad_keys, m, of_keys[m]);
    }
  }
  size_t next = 0;
  const auto take = [&](const Tensor& input, auto&& total) {
    if (!backward.wanted[next++]) return at::empty({0}, input.options());
    return dense::in_order_of(input, total());
  };
  Gradients result;
  std::get<0>(result) = take(call.query, [&] { return products.by_head(grad_query); });
  for (int m = 0; m < order; ++m) {
    std::get<1>(result).push_back(
        take(call.keys[m], [&] { return products.unflattened(grad_keys[m], m); }));
  }
  for (int m = 0; m < order; ++m) {
    std::get<2>(result).push_back(
        take(call.values[m], [&] { return products.unflattened(grad_values[m], m); }));
  }
  return result;
}

}  // namespace nsimplex::sparse
