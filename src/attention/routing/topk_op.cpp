// Schema, shapes and public functions of topk_keys.

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/library.h>

#include "attention/dense/dense_arguments.h"
#include "attention/dispatch.h"
#include "attention/routing/topk_call.h"

namespace nsimplex {
namespace routing {
namespace {

using at::Tensor;

#define NSIMPLEX_TOPK_SCHEMA                                                               \
  "(Tensor query, Tensor key, SymInt k, *, Tensor? weights=None, str scores='relu', bool " \
  "causal=False, float? scale=None, Tensor? lse=None, Tensor? key_lengths=None, Tensor? "  \
  "adjacency=None, Tensor? candidates=None) -> (Tensor indices, Tensor scores)"

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("topk_keys" NSIMPLEX_TOPK_SCHEMA, {at::Tag::pt2_compliant_tag});
  m.def("topk_keys_reference" NSIMPLEX_TOPK_SCHEMA, {at::Tag::pt2_compliant_tag});
}

template <class Operator>
Output call_operator(const Operator& op, const Call& call) {
  return op.call(call.query, call.key, call.k, call.weights, call.scores, call.causal, call.scale,
                 call.lse, call.key_lengths, call.adjacency, call.candidates);
}

using Function = decltype(flat<&reference>);

Output dispatch(const Call& call) {
  static const auto op = find_operator<Function>("nsimplex::topk_keys");
  return call_operator(op, call);
}

Output dispatch_reference(const Call& call) {
  static const auto op = find_operator<Function>("nsimplex::topk_keys_reference");
  return call_operator(op, call);
}

Output meta(const Call& call) {
  check(call);
  const std::array<c10::SymInt, 3> sizes{call.query.sym_size(0), call.query.sym_size(2), call.k};
  const at::TensorOptions options = call.query.options();
  return {at::empty_symint(sizes, options.dtype(at::kLong)),
          at::empty_symint(sizes, options.dtype(dense::accumulate_type(call.query.scalar_type())))};
}

// A choice has no derivative: nothing is recorded, and neither result wants a gradient.
template <Output (*below)(const Call&)>
Output autograd(const Call& call) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  return below(call);
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("topk_keys", TORCH_FN(flat<&reference>));
  m.impl("topk_keys_reference", TORCH_FN(flat<&reference>));
}

TORCH_LIBRARY_IMPL(nsimplex, Meta, m) {
  m.impl("topk_keys", TORCH_FN(flat<&meta>));
  m.impl("topk_keys_reference", TORCH_FN(flat<&meta>));
}

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("topk_keys", TORCH_FN(flat<&autograd<&dispatch>>));
  m.impl("topk_keys_reference", TORCH_FN(flat<&autograd<&dispatch_reference>>));
}

template <Output (*function)(const Call&)>
TopkKeys call_with(const Tensor& query, const Tensor& key, int64_t k, const TopkOptions& options) {
  OptionalTensor adjacency = options.adjacency, candidates = options.candidates;
  if (adjacency && adjacency->layout() == at::kSparseCsr) {
    TORCH_CHECK_VALUE(!candidates,
                      "[topk_keys] candidates: given beside adjacency, expected one of them");
    candidates = neighbours(*adjacency, /*self_loops=*/false);
    adjacency.reset();
  }
  if (adjacency && adjacency->dim() == 2) adjacency = adjacency->unsqueeze(0);
  if (candidates && candidates->dim() == 2) candidates = candidates->unsqueeze(0);
  auto [indices, scores] =
      function({query, key, k, options.weights, name_of(options.scores), options.causal,
                options.scale, options.lse, options.key_lengths, adjacency, candidates});
  return {std::move(indices), std::move(scores)};
}

}  // namespace

Tensor pair_lse(const Call& call) {
  const at::NoGradGuard no_grad;
  AttentionOptions options{.causal = call.causal, .key_lengths = call.key_lengths};
  const at::ScalarType type = dense::accumulate_type(call.query.scalar_type());
  if (call.scale) options.scale = Scale{*call.scale, 1.0};
  if (call.adjacency) options.mask = call.adjacency->unsqueeze(1);
  const Tensor key = call.key.to(type);
  // Values of one channel: only lse is wanted.
  const Tensor values = at::zeros({1}, key.options())
                            .expand_symint({key.sym_size(0), key.sym_size(1), key.sym_size(2), 1});
  return attention(call.query.to(type), {key}, {values}, options).lse;
}

}  // namespace routing

TopkKeys topk_keys(const at::Tensor& query, const at::Tensor& key, int64_t k,
                   const TopkOptions& options) {
  return routing::call_with<&routing::dispatch>(query, key, k, options);
}

TopkKeys topk_keys_reference(const at::Tensor& query, const at::Tensor& key, int64_t k,
                             const TopkOptions& options) {
  return routing::call_with<&routing::dispatch_reference>(query, key, k, options);
}

}  // namespace nsimplex
