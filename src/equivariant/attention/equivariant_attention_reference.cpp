// Attention over lists of tuples by ATen calls, over the list of all admissible pairs of a class.

#include <ATen/ATen.h>

#include "equivariant/attention/equivariant_attention_layer.h"
#include "support/transforms.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;

struct Pairs {
  Tensor queries, keys;  // int64 [pairs]
};

// All pairs of the groups of a relation.
Pairs pairs_of(const RelationTensors& relation) {
  const Tensor key_counts = relation.key_offsets.diff().to(at::kLong);
  const Tensor query_counts = relation.query_offsets.diff().to(at::kLong);
  const Tensor group = at::repeat_interleave(query_counts);  // per query
  const Tensor keys_of_query = key_counts.index_select(0, group);
  const Tensor query = at::repeat_interleave(keys_of_query);  // per pair
  const Tensor first = keys_of_query.cumsum(0) - keys_of_query;
  const Tensor place =
      at::arange(query.size(0), query.options()) - first.index_select(0, query) +
      relation.key_offsets.to(at::kLong).index_select(0, group.index_select(0, query));
  return {relation.queries.to(at::kLong).index_select(0, query),
          relation.keys.to(at::kLong).index_select(0, place)};
}

// The pairs of a term: those of its relation that share nothing else.
Pairs pairs_of(const ClassCall& call, const AttentionTerm& term) {
  Pairs pairs = pairs_of(call.plan.relations[term.relation]);
  if (call.form == AttentionForm::decoupled) return pairs;
  Tensor kept = at::ones_like(pairs.keys, at::kBool);
  for (const int64_t a : call.part.key_only) {
    for (const int64_t b : term.query_only) {
      const Tensor key = call.plan.sources[call.part.keys].nodes.select(0, a);
      const Tensor query = call.plan.sources[call.part.queries].nodes.select(0, b);
      kept =
          kept.logical_and(key.index_select(0, pairs.keys) != query.index_select(0, pairs.queries));
    }
  }
  const Tensor places = kept.nonzero().squeeze(1);
  return {pairs.queries.index_select(0, places), pairs.keys.index_select(0, places)};
}

Pairs pairs_of(const ClassCall& call) {
  std::vector<Tensor> queries, keys;
  for (const AttentionTerm& term : call.part.terms) {
    const Pairs own = pairs_of(call, term);
    queries.push_back(own.queries);
    keys.push_back(own.keys);
  }
  return {at::cat(queries), at::cat(keys)};
}

// Coefficients of all pairs, and the results.
struct Attended {
  Pairs pairs;
  Tensor weights;     // [pairs, H]
  Tensor out;         // [queries, H, e]
  Tensor normalizer;  // [queries, H, 1]; 1 without normalisation
};

Tensor sum_of_queries(const ClassCall& call, const Pairs& pairs, const Tensor& of_pairs) {
  std::vector<int64_t> shape = of_pairs.sizes().vec();
  shape[0] = call.query.size(0);
  return of_pairs.new_zeros(shape).index_add(0, pairs.queries, of_pairs);
}

Attended attend(const ClassCall& call) {
  Attended result{pairs_of(call), {}, {}, {}};
  const Pairs& pairs = result.pairs;
  result.weights =
      (call.query.index_select(0, pairs.queries) * call.key.index_select(0, pairs.keys)).sum(-1);
  if (call.form == AttentionForm::softmax) {
    const Tensor scores = call.scale * result.weights, fixed = scores.detach();
    const Tensor most =
        fixed.new_full({call.query.size(0), scores.size(1)}, -INFINITY)
            .scatter_reduce(0, pairs.queries.unsqueeze(1).expand_as(fixed), fixed, "amax");
    result.weights = (scores - most.index_select(0, pairs.queries)).exp();
  }
  const Tensor values = call.value.index_select(0, pairs.keys);
  const Tensor sums = sum_of_queries(call, pairs, result.weights.unsqueeze(-1) * values);
  if (!call.normalise) {
    result.normalizer = at::ones({1, 1, 1}, sums.options());
    result.out = sums * static_cast<double>(call.part.multiplicity);
    return result;
  }
  const Tensor count = sum_of_queries(call, pairs, at::ones_like(pairs.keys)).view({-1, 1, 1});
  const Tensor all = sum_of_queries(call, pairs, result.weights).unsqueeze(-1);
  result.normalizer = at::where(count == 0, 1., all);
  result.out = sums / result.normalizer;
  return result;
}

// For every column the place of each row, or `none` for a row without an input tuple.
std::vector<Tensor> seen_places(const SharedTensors& shared, int64_t none) {
  const Tensor places = shared.places.to(at::kLong);
  return at::where(places < 0, none, places).unbind(1);
}

}  // namespace

Tensor ReferenceClass::product(ClassRows /*which*/, const std::optional<Tensor>& bias,
                               const Tensor& rows, const Tensor& matrix) {
  return bias ? at::addmm(*bias, rows, matrix) : at::mm(rows, matrix);
}

// A row without an input tuple uses a zero after the last product.
Tensor ReferenceClass::product(ClassRows which, const std::optional<Tensor>& bias,
                               const Tensor& rows, const Tensor& matrix, const Tensor& products,
                               const SharedTensors& shared) {
  Tensor sum = product(which, bias, rows, matrix);
  const Tensor with_none = at::constant_pad_nd(products, {0, 0, 0, 1});
  for (const Tensor& places : seen_places(shared, products.size(0))) {
    sum = sum + with_none.index_select(0, places);
  }
  return sum;
}

Tensor ReferenceClass::sums_of_rows(const SharedTensors& shared, const Tensor& rows) {
  const int64_t count = shared.offsets.size(0) - 1;
  Tensor sums = rows.new_zeros({count + 1, rows.size(1)});
  for (const Tensor& places : seen_places(shared, count)) sums = sums.index_add(0, places, rows);
  return sums.narrow(0, 0, count);
}

void ReferenceClass::add_product(std::optional<Tensor>& sum, const Tensor& rows,
                                 const Tensor& matrix, std::optional<ColumnPlace> place) {
  Tensor own = at::mm(rows, matrix);
  if (place) {
    own = at::constant_pad_nd(own, {place->first, place->all - place->first - own.size(1)});
  }
  sum = sum ? *sum + own : own;
}

Tensor ReferenceClass::plain_product(const Tensor& rows, const Tensor& matrix) {
  return at::mm(rows, matrix);
}

Tensor ReferenceClass::transposed_product(const Tensor& rows, const Tensor& grad) {
  return at::mm(rows.t(), grad);
}

Tensor ReferenceClass::features(ClassRows /*which*/, FeatureMap map, const Tensor& x,
                                const Tensor& directions, const FeatureShift& shift) {
  return apply_features(map, x, directions, shift);
}

Tensor ReferenceClass::features_backward(FeatureMap map, const Tensor& x, const Tensor& directions,
                                         const Tensor& features, const Tensor& grad) {
  return equivariant::features_backward(map, x, directions, features, grad).flatten(1);
}

Tensor ReferenceClass::flat_rows(const Tensor& grad, at::ScalarType /*type*/) {
  return grad.flatten(1);
}

Tensor ReferenceClass::forward(const ClassCall& call) { return attend(call).out; }

ClassGradients ReferenceClass::backward(const ClassCall& call, const Tensor& grad_out) {
  const Attended own = attend(call);
  const Pairs& pairs = own.pairs;
  const double factor = call.normalise ? 1 : static_cast<double>(call.part.multiplicity);
  const Tensor grad = grad_out * factor / own.normalizer;
  const Tensor of_pairs = grad.index_select(0, pairs.queries);  // [pairs, H, e]
  Tensor slope = (of_pairs * call.value.index_select(0, pairs.keys)).sum(-1);
  if (call.normalise) {
    slope = slope - (grad * own.out).sum(-1).index_select(0, pairs.queries);
  }
  if (call.form == AttentionForm::softmax) slope = call.scale * slope * own.weights;
  slope = slope.unsqueeze(-1);
  const auto to_keys = [&](const Tensor& like, const Tensor& of_pair) {
    return at::zeros_like(like).index_add(0, pairs.keys, of_pair);
  };
  return {own.out, sum_of_queries(call, pairs, slope * call.key.index_select(0, pairs.keys)),
          to_keys(call.key, slope * call.query.index_select(0, pairs.queries)),
          to_keys(call.value, own.weights.unsqueeze(-1) * of_pairs)};
}

namespace {

// The values of a plan can be read if it is on the CPU and is not being traced.
void check_fingerprint_of(const AttentionCall& call) {
  const Tensor& last = call.plan.back();
  if (last.is_cpu() && has_numbers(last)) check_fingerprint(call.plan, call.parts);
}

}  // namespace

Tensor reference_attention(const AttentionCall& call) {
  check_attention(call);
  check_fingerprint_of(call);
  return attend_in_wide_type<ReferenceClass>(call);
}

AttentionGradients reference_attention_backward(const AttentionBackwardCall& call) {
  check_attention_backward(call);
  check_fingerprint_of(call.forward);
  return differentiate_in_wide_type<ReferenceClass>(call);
}

}  // namespace nsimplex::equivariant
