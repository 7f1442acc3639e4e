// Schema, checks, autograd and public function of indexer_loss.
//
// The gradient of the result is one number. So the forward pass computes the gradients of the loss
// together with the loss, chunk by chunk. It never stores anything of size T^2 or T k D.

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/functorch/TensorWrapper.h>
#include <nsimplex/routing.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "attention/common/attention_arguments.h"
#include "attention/common/attention_check.h"
#include "attention/routing/indexer_loss_call.h"
#include "attention/routing/topk_keys_call.h"
#include "support/operator.h"

namespace nsimplex::routing {
namespace {

using at::Tensor;
using dense::holds;

void check_layer(const LossCall& call) {
  dense::check(dense::Call{call.query, call.keys, call.keys,
                           plain_options(call.causal, call.form, call.logit_scale)});
  TORCH_CHECK_VALUE(call.query.device() == call.query_index.device(),
                    "[indexer_loss] query: expected the device of query_index, ",
                    call.query_index.device(), ", got ", call.query.device());
  for (const int64_t d : {0, 2}) {
    TORCH_CHECK_VALUE(holds(call.query.sym_size(d).sym_eq(call.query_index.sym_size(d))),
                      "[indexer_loss] query: expected batch and length of query_index, ",
                      call.query_index.sym_sizes(), ", got ", call.query.sym_sizes());
  }
  for (size_t m = 0; m < call.keys.size(); ++m) {
    TORCH_CHECK_VALUE(holds(call.keys[m].sym_size(2).sym_eq(call.key_index.sym_size(2))),
                      "[indexer_loss] keys[", m, "]: expected the length of key_index, ",
                      call.key_index.sym_size(2), ", got ", call.keys[m].sym_size(2));
  }
}

void check_indices(const LossCall& call) {
  TORCH_CHECK_VALUE(call.path() || call.pattern == name_of(TuplePattern::product),
                    "[indexer_loss] pattern: expected 'product' or 'path', got '", call.pattern,
                    "'");
  if (!call.indices) {
    TORCH_CHECK_VALUE(!call.path(), "[indexer_loss] pattern: 'path' needs indices");
    return;
  }
  const Tensor& indices = *call.indices;
  TORCH_CHECK_TYPE(indices.scalar_type() == at::kLong,
                   "[indexer_loss] indices: expected int64, got ", indices.scalar_type());
  TORCH_CHECK_VALUE(indices.device() == call.query_index.device(),
                    "[indexer_loss] indices: expected the device of query_index, ",
                    call.query_index.device(), ", got ", indices.device());
  const c10::SymInt batch = call.query_index.sym_size(0), length = call.key_index.sym_size(2);
  const c10::SymInt rows = call.path() ? length : call.query_index.sym_size(2);
  TORCH_CHECK_VALUE(
      indices.dim() == 3 && holds(indices.sym_size(1).sym_eq(rows)) &&
          holds(indices.sym_size(2).sym_ge(1)) &&
          holds(indices.sym_size(0).sym_eq(1).sym_or(indices.sym_size(0).sym_eq(batch))),
      "[indexer_loss] indices: expected shape [1 or ", batch, ", ", rows,
      ", k] with k at least 1, got ", indices.sym_sizes());
  TORCH_CHECK_VALUE(!call.path() || holds(length.sym_ge(call.query_index.sym_size(2))),
                    "[indexer_loss] query_index: expected at most the ", length,
                    " keys with pattern 'path', got ", call.query_index.sym_size(2), " queries");
}

}  // namespace

void check_values(const LossCall& call) {
  if (!call.indices || call.indices->numel() == 0) return;
  const auto [low, high] = at::aminmax(*call.indices);
  const int64_t last = call.key_index.size(2) - 1;
  TORCH_CHECK_VALUE(low.item<int64_t>() >= -1 && high.item<int64_t>() <= last,
                    "[indexer_loss] indices: expected -1 to ", last, ", got ", low.item<int64_t>(),
                    " to ", high.item<int64_t>());
}

void check_index(const LossCall& call) {
  check(Call{.query = call.query_index,
             .key = call.key_index,
             .k = 1,
             .weights = call.weights,
             .scores = call.scores,
             .causal = call.causal,
             .scale = call.scale,
             .lse = call.lse,
             .function = "indexer_loss",
             .query_name = "query_index",
             .key_name = "key_index"});
}

void check(const LossCall& call) {
  check_index(call);
  TORCH_CHECK_VALUE(!call.softmax() || call.lse,
                    "[indexer_loss] lse: expected one with scores 'softmax'");
  check_layer(call);
  check_indices(call);
}

}  // namespace nsimplex::routing

namespace nsimplex {
namespace routing {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

#define NSIMPLEX_LOSS_SCHEMA                                                                 \
  "Tensor query_index, Tensor key_index, Tensor query, Tensor[] keys, *" NSIMPLEX_SCHEMA_OF( \
      NSIMPLEX_LOSS_OPTIONS)

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  m.def("indexer_loss(" NSIMPLEX_LOSS_SCHEMA ") -> Tensor", tags);
  m.def("indexer_loss_gradients(" NSIMPLEX_LOSS_SCHEMA
        ", bool[4] output_mask) -> (Tensor loss, Tensor grad_query_index, Tensor grad_key_index, "
        "Tensor grad_weights, Tensor grad_lse)",
        tags);
}

struct GradientsCall {
  LossCall loss;
  Wanted wanted{};

  static auto fields(auto& self) {
    return std::tuple_cat(LossCall::fields(self.loss), std::tie(self.wanted));
  }
};

// Rejects gradients of arguments that were not given.
void check_wanted(const LossCall& call, const Wanted& wanted) {
  const std::pair<const char*, bool> lacking[] = {{"weights", wanted[2] && !call.weights},
                                                  {"lse", wanted[3] && !call.lse}};
  for (const auto& [name, lacks] : lacking) {
    TORCH_CHECK_VALUE(!lacks, "[indexer_loss] output_mask: expected false for ", name,
                      ", which was not given, got true");
  }
}

LossOutput with_gradients(const GradientsCall& whole) {
  const auto& [call, wanted] = whole;
  check(call);
  check_wanted(call, wanted);
  if (call.query_index.is_cpu()) check_values(call);
  LossParts parts(call, wanted);
  std::vector<Tensor> losses, counts, query, weights, lse;
  for (int64_t first = 0; first == 0 || first < parts.queries(); first += parts.chunk()) {
    LossPart part = parts.part(first, std::min(parts.chunk(), parts.queries() - first));
    losses.push_back(part.loss);
    counts.push_back(part.queries);
    if (wanted[0]) query.push_back(part.grad_query);
    if (wanted[2]) weights.push_back(part.grad_weights);
    if (wanted[3]) lse.push_back(part.grad_lse);
  }
  const Tensor count = at::stack(counts).sum().clamp_min(1);
  const auto gradient = [&](const Tensor& sum, const Tensor& input) {
    return (sum / count).to(input.scalar_type());
  };
  const auto joined = [&](const std::vector<Tensor>& rows, const Tensor* input) {
    return rows.empty() ? at::empty({0}, call.query_index.options())
                        : gradient(at::cat(rows, 2), *input);
  };
  const auto given = [](const OptionalTensor& tensor) { return tensor ? &*tensor : nullptr; };
  return {at::stack(losses).sum() / count, joined(query, &call.query_index),
          wanted[1] ? gradient(parts.grad_key(), call.key_index)
                    : at::empty({0}, call.query_index.options()),
          joined(weights, given(call.weights)), joined(lse, given(call.lse))};
}

LossOutput meta_gradients(const GradientsCall& whole) {
  const auto& [call, wanted] = whole;
  check(call);
  check_wanted(call, wanted);
  const auto like = [&](bool is_wanted, const Tensor& input) {
    return is_wanted ? at::empty_symint(input.sym_sizes(), input.options())
                     : at::empty({0}, call.query_index.options());
  };
  const auto optional = [&](bool is_wanted, const OptionalTensor& input) {
    return like(is_wanted, is_wanted ? *input : call.query_index);
  };
  const at::ScalarType type = dense::accumulate_type(call.query_index.scalar_type());
  return {at::empty({}, call.query_index.options().dtype(type)), like(wanted[0], call.query_index),
          like(wanted[1], call.key_index), optional(wanted[2], call.weights),
          optional(wanted[3], call.lse)};
}

LossOutput dispatch(const GradientsCall& call) {
  static const Operator<LossOutput, GradientsCall> gradients("nsimplex::indexer_loss_gradients");
  return gradients(call);
}

// log sum_j exp(logit_hij), with its gradient.
Tensor index_lse(const LossCall& call) {
  const Tensor& key = call.key_index;
  AttentionOptions options{.causal = call.causal};
  if (call.scale) options.scale = Scale{*call.scale, 1.0};
  const Tensor values = at::zeros({1}, key.options())
                            .expand_symint({key.sym_size(0), key.sym_size(1), key.sym_size(2), 1});
  return attention(call.query_index, {key}, {values}, options).lse;
}

// Calls function(call) with the lse of the softmax, which is given or computed.
template <class Function>
Tensor with_lse(const LossCall& call, Function&& function) {
  if (!call.softmax() || call.lse) return function(call);
  check_index(call);
  LossCall own = call;
  own.lse = index_lse(call);
  return function(own);
}

Tensor loss_only(const LossCall& call) {
  return with_lse(call, [](const LossCall& own) { return std::get<0>(dispatch({own})); });
}

struct LossFunction : torch::autograd::Function<LossFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& query_index,
                        const Tensor& key_index, const OptionalTensor& weights,
                        const OptionalTensor& lse, const LossCall* call) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto wants = [](const OptionalTensor& tensor) {
      return tensor && tensor->requires_grad();
    };
    const Wanted wanted{query_index.requires_grad(), key_index.requires_grad(), wants(weights),
                        wants(lse)};
    auto [loss, grad_query, grad_key, grad_weights, grad_lse] = dispatch({*call, wanted});
    context->save_for_backward({grad_query, grad_key, grad_weights, grad_lse});
    context->saved_data["weights"] = weights.has_value();
    context->saved_data["lse"] = lse.has_value();
    return loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    // The gradients are constants here, so their derivative would silently be incomplete.
    TORCH_CHECK(!at::GradMode::is_enabled(),
                "[indexer_loss] is once differentiable: create_graph is not supported");
    const variable_list saved = context->get_saved_variables();
    variable_list result(kLossInputs + 1);
    // An absent optional input has no edge in the graph, but it has a place in the result.
    int64_t edge = 0;
    const bool present[kLossInputs] = {true, true, context->saved_data["weights"].toBool(),
                                       context->saved_data["lse"].toBool()};
    for (int i = 0; i < kLossInputs; ++i) {
      if (!present[i] || !context->needs_input_grad(edge++)) continue;
      result[i] = saved[i] * grads[0].to(saved[i].scalar_type());
    }
    return result;
  }
};

Tensor autograd_loss(const LossCall& call) {
  const auto derived = [](const OptionalTensor& tensor) {
    return tensor && (has_tangent(*tensor) || at::functorch::maybeGetTensorWrapper(*tensor));
  };
  const bool inside = derived(call.query_index) || derived(call.key_index) ||
                      derived(call.weights) || derived(call.lse);
  TORCH_CHECK_NOT_IMPLEMENTED(!inside,
                              "[indexer_loss] query_index, key_index, weights, lse: expected "
                              "tensors outside of grad, vjp and jvp, because the loss is "
                              "differentiated once, by backward() or torch.autograd.grad");
  return with_lse(call, [](const LossCall& own) {
    return LossFunction::apply(own.query_index, own.key_index, own.weights, own.lse, &own);
  });
}

LossOutput autograd_gradients(const GradientsCall& call) {
  const at::AutoDispatchBelowADInplaceOrView below;
  return dispatch(call);
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("indexer_loss", TORCH_FN(flat<&loss_only>));
  m.impl("indexer_loss_gradients", TORCH_FN(flat<&with_gradients>));
}

TORCH_LIBRARY_IMPL(nsimplex, Meta, m) {
  m.impl("indexer_loss_gradients", TORCH_FN(flat<&meta_gradients>));
}

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("indexer_loss", TORCH_FN(flat<&autograd_loss>));
  m.impl("indexer_loss_gradients", TORCH_FN(flat<&autograd_gradients>));
}

}  // namespace
}  // namespace routing

at::Tensor indexer_loss(const at::Tensor& query_index, const at::Tensor& key_index,
                        const at::Tensor& query, at::TensorList keys,
                        const IndexerLossOptions& options) {
  static const Operator<at::Tensor, routing::LossCall> loss("nsimplex::indexer_loss");
  routing::LossCall call{
      .query_index = query_index,
      .key_index = key_index,
      .query = query,
      .keys = keys,
      .weights = options.weights,
      .lse = options.lse,
      .indices = options.indices,
      .scores = name_of(options.scores),
      .causal = options.causal,
      .scale = options.scale,
      .pattern = name_of(options.path ? TuplePattern::path : TuplePattern::product),
      .form = name_of(options.form)};
  if (options.attention_scale) call.logit_scale = options.attention_scale->logit;
  return loss(call);
}

}  // namespace nsimplex
