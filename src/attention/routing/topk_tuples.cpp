// The best tuples of every query as a list. Each tuple has its own score.

#include <ATen/ATen.h>
#include <nsimplex/routing.h>
#include <torch/library.h>

#include "attention/common/attention_arguments.h"
#include "attention/common/attention_augment.h"
#include "attention/routing/selection.h"
#include "support/as_function.h"
#include "support/plain_tensor.h"
#include "support/size_limits.h"

namespace nsimplex {
namespace routing {
namespace {

using at::Tensor;

void check_tuples(const dense::Call& call, int64_t count, const OptionalTensor& weights) {
  dense::check(call);
  dense::check_values(call);
  TORCH_CHECK_VALUE(!dense::augmented(call),
                    "[topk_tuples] augment: a row of ones has no index, expected none");
  TORCH_CHECK_VALUE(count >= 1, "[topk_tuples] count: expected at least 1, got ", count);
  as_function("topk_tuples",
              [&] { require_room("count", {call.query.size(0), call.query.size(2), count}); });
  if (weights) {
    TORCH_CHECK_VALUE(weights->sizes().equals(call.query.sizes().slice(0, 3)),
                      "[topk_tuples] weights: expected shape ", call.query.sizes().slice(0, 3),
                      ", got ", weights->sizes());
    TORCH_CHECK_TYPE(is_floating(*weights),
                     "[topk_tuples] weights: expected floating numbers, got ",
                     weights->scalar_type());
  }
  double tuples = 1;  // an int64 could overflow
  for (const Tensor& key : call.keys) tuples *= static_cast<double>(key.size(2));
  TORCH_CHECK_VALUE(tuples < 0x1p62, "[topk_tuples] keys: expected fewer than 2^62 tuples, got ",
                    tuples);
}

TupleList tuples(const dense::Call& call, int64_t count, const OptionalTensor& weights) {
  check_tuples(call, count, weights);
  Scoring scoring;
  if (weights) scoring.weights = *weights;
  const Tensor best = best_tuples(call, count, scoring).first;  // [B, Tq, count]
  const Tensor keep = best >= 0;
  Tensor rest = best.masked_select(keep);
  std::vector<Tensor> columns(call.keys.size());
  for (size_t m = columns.size(); m-- > 0;) {
    const int64_t length = std::max<int64_t>(call.keys[m].size(2), 1);
    columns[m] = rest.remainder(length);
    rest = rest.div(length, "floor");
  }
  const Tensor owner = at::repeat_interleave(keep.sum(-1).flatten());
  return list_of_rows(std::move(columns), owner, best.size(0), best.size(1));
}

// A call without values, which do not affect the selection. The keys take their place.
struct TuplesCall {
  dense::Call call;
  int64_t count = 0;
  OptionalTensor weights;

  static auto fields(auto& self) {
    return std::tuple_cat(std::tie(self.call.query, self.call.keys, self.count, self.weights),
                          dense::Options::option_fields(self.call.options));
  }
};

std::tuple<Tensor, Tensor> operator_tuples(const TuplesCall& given) {
  const at::NoGradGuard no_grad;
  const TupleList list =
      tuples({given.call.query, given.call.keys, given.call.keys, given.call.options}, given.count,
             given.weights);
  return {list.indices, list.offsets};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "topk_tuples(Tensor query, Tensor[] keys, int count, *, Tensor? "
      "weights=None" NSIMPLEX_OPTIONS_SCHEMA ") -> (Tensor indices, Tensor offsets)");
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeImplicitAutograd, m) {
  m.impl("topk_tuples", TORCH_FN(flat<&operator_tuples>));
}

}  // namespace
}  // namespace routing

TupleList topk_tuples(const at::Tensor& query, at::TensorList keys, int64_t count,
                      const std::optional<at::Tensor>& weights, const AttentionOptions& options) {
  const at::NoGradGuard no_grad;
  return dense::with_call(query, keys, keys, options, [&](const dense::Call& call) {
    return routing::tuples(call, count, weights);
  });
}

namespace {

using at::Tensor;

Tensor mass(const Tensor& sparse_lse, const Tensor& dense_lse) {
  for (const Tensor* lse : {&sparse_lse, &dense_lse}) {
    const char* const name = lse == &sparse_lse ? "sparse_lse" : "dense_lse";
    TORCH_CHECK_TYPE(is_floating(*lse), "[retained_mass] ", name,
                     ": expected floating numbers, got ", lse->scalar_type());
    TORCH_CHECK_VALUE(lse->sym_sizes().equals(dense_lse.sym_sizes()), "[retained_mass] ", name,
                      ": expected shape ", dense_lse.sym_sizes(), ", got ", lse->sym_sizes());
  }
  const Tensor attends = at::isneginf(dense_lse).logical_not();
  const Tensor each =
      (sparse_lse - dense_lse.masked_fill(attends.logical_not(), 0)).exp() * attends;
  return each.sum() / attends.sum();
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("retained_mass(Tensor sparse_lse, Tensor dense_lse) -> Tensor",
        {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeImplicitAutograd, m) {
  m.impl("retained_mass", TORCH_FN(mass));
}

}  // namespace

at::Tensor retained_mass(const at::Tensor& sparse_lse, const at::Tensor& dense_lse) {
  return mass(sparse_lse, dense_lse);
}

}  // namespace nsimplex
