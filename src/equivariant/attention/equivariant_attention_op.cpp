// Attention over lists of tuples: schemas, checks, shapes, the public function, the autograd node
// and the batching rule of vmap.

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "equivariant/attention/equivariant_attention_call.h"
#include "equivariant/attention/equivariant_attention_layer.h"
#include "support/operator.h"
#include "support/plain_tensor.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr size_t kWeights = 7;  // including x

// Saves the inputs only.
struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& query,
                        const Tensor& query_bias, const Tensor& key, const Tensor& key_bias,
                        const Tensor& value, const Tensor& output, const AttentionCall* call) {
    const at::AutoDispatchBelowADInplaceOrView below;
    variable_list saved{x, query, query_bias, key, key_bias, value, output};
    saved.push_back(call->directions.value_or(Tensor()));
    saved.insert(saved.end(), call->plan.begin(), call->plan.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["parts"] = call->parts.vec();
    context->saved_data["heads"] = call->heads;
    context->saved_data["form"] = std::string(call->form);
    context->saved_data["normalise"] = call->normalise;
    context->saved_data["features"] = std::string(call->features);
    return dispatch_attention({x, query, query_bias, key, key_bias, value, output, call->directions,
                               call->plan, call->parts, call->heads, call->form, call->normalise,
                               call->features});
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const at::TensorList all(saved);
    std::optional<Tensor> directions;
    if (saved[kWeights].defined()) directions = saved[kWeights];
    const std::vector<int64_t> parts = context->saved_data["parts"].toIntVector();
    const std::string form = context->saved_data["form"].toStringRef();
    const std::string features = context->saved_data["features"].toStringRef();
    AttentionGradients gradients = dispatch_attention_backward(
        {grads[0],
         {all[0], all[1], all[2], all[3], all[4], all[5], all[6], directions,
          all.slice(kWeights + 1), parts, context->saved_data["heads"].toInt(), form,
          context->saved_data["normalise"].toBool(), features}});
    variable_list result(kWeights + 1);  // the last one belongs to the call
    std::apply(
        [&](auto&... each) {
          size_t i = 0;
          ((result[i] = context->needs_input_grad(i) ? std::move(each) : Tensor(), ++i), ...);
        },
        gradients);
    return result;
  }
};

Tensor above_forward(const AttentionCall& call) {
  return autograd_forward(
      call, &reference_attention, &dispatch_attention, [](const AttentionCall& own) {
        return AttentionFunction::apply(own.x, own.query, own.query_bias, own.key, own.key_bias,
                                        own.value, own.output, &own);
      });
}

AttentionGradients above_backward(const AttentionBackwardCall& call) {
  return autograd_backward(call, &reference_attention_backward, &dispatch_attention_backward);
}

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("equivariant_attention", TORCH_FN(flat_attention<&above_forward>));
  m.impl("equivariant_attention_backward", TORCH_FN(flat_attention_backward<&above_backward>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("equivariant_attention", TORCH_FN(flat_attention<&reference_attention>));
  m.impl("equivariant_attention_backward",
         TORCH_FN(flat_attention_backward<&reference_attention_backward>));
}

}  // namespace
}  // namespace nsimplex::equivariant

namespace nsimplex {
namespace equivariant {
namespace {

using at::Tensor;

constexpr char kAt[] = "[equivariant_attention] ";

using Forward = decltype(flat_attention<&reference_attention>);
using Backward = decltype(flat_attention_backward<&reference_attention_backward>);

// The size of dimension 0 is checked with the number of classes.
void check_weight(const char* name, const Tensor& weight, const Tensor& x,
                  std::vector<std::optional<c10::SymInt>> shape, const char* shown) {
  bool fits = weight.dim() == std::ssize(shape);
  for (size_t d = 0; fits && d < shape.size(); ++d) {
    fits = !shape[d] || weight.sym_size(static_cast<int64_t>(d)) == *shape[d];
  }
  TORCH_CHECK_VALUE(fits, kAt, name, ": expected ", shown, ", got ", weight.sym_sizes());
  TORCH_CHECK_TYPE(weight.scalar_type() == x.scalar_type(), kAt, name, ": expected ",
                   x.scalar_type(), " as x, got ", weight.scalar_type());
}

void check_directions(const AttentionCall& call, const c10::SymInt& dim) {
  TORCH_CHECK_VALUE(call.directions.has_value(), kAt,
                    "directions: expected [d, features] for form ", call.form, ", got none");
  TORCH_CHECK_VALUE(is_plain(*call.directions), kAt,
                    "directions: expected a dense tensor, got another layout");
  check_weight("directions", *call.directions, call.x, {dim, std::nullopt}, "[d, features]");
  TORCH_CHECK_VALUE(call.directions->sym_size(1) > 0, kAt,
                    "directions: expected at least one feature, got 0");
}

}  // namespace

void check_attention(const AttentionCall& call) {
  const auto form = parse_attention_form(call.form, "equivariant_attention");
  parse_feature_map(call.features, "equivariant_attention");
  const Tensor& x = call.x;
  TORCH_CHECK_TYPE(is_floating(x), kAt, "x: expected a floating dtype, got ", x.scalar_type());
  TORCH_CHECK_VALUE(x.dim() == 2, kAt, "x: expected [m, C], got ", x.sym_sizes());
  TORCH_CHECK_VALUE(call.heads > 0, kAt, "heads: expected at least 1, got ", call.heads);
  const c10::SymInt channels = x.sym_size(1);
  TORCH_CHECK_VALUE(call.query.dim() == 3 && call.query.sym_size(2) % call.heads == 0, kAt,
                    "query: expected [maps, C, H d] for ", call.heads, " heads, got ",
                    call.query.sym_sizes());
  TORCH_CHECK_VALUE(call.value.dim() == 3 && call.value.sym_size(2) % call.heads == 0, kAt,
                    "value: expected [classes, C, H e] for ", call.heads, " heads, got ",
                    call.value.sym_sizes());
  const c10::SymInt width = call.query.sym_size(2), value_width = call.value.sym_size(2);
  const c10::SymInt classes = call.value.sym_size(0);
  check_weight("query", call.query, x, {std::nullopt, channels, width}, "[maps, C, H d]");
  check_weight("query_bias", call.query_bias, x, {classes, width}, "[classes, H d]");
  check_weight("key", call.key, x, {std::nullopt, channels, width}, "[maps, C, H d]");
  check_weight("key_bias", call.key_bias, x, {classes, width}, "[classes, H d]");
  check_weight("value", call.value, x, {classes, channels, value_width}, "[classes, C, H e]");
  check_weight("output", call.output, x, {classes, value_width, std::nullopt}, "[classes, H e, D]");
  if (form == AttentionForm::softmax) {
    TORCH_CHECK_VALUE(call.normalise, kAt, "normalise: expected true for form softmax, got false");
  } else {
    check_directions(call, width / call.heads);
  }
  TORCH_CHECK_VALUE(!call.plan.empty(), kAt, "plan: expected that of equivariant_attention_plan");
  const at::Device own = call.plan[0].device();
  TORCH_CHECK_VALUE(own == x.device(), kAt, "plan: expected x's device ", x.device(), ", got ", own,
                    "; plan.to(device) moves it");
}

void check_attention_backward(const AttentionBackwardCall& call) {
  check_attention(call.forward);
  const c10::SymInt rows = call.forward.plan[0].sym_size(0);
  TORCH_CHECK_VALUE(call.grad_out.dim() == 2 && call.grad_out.sym_size(0) == rows &&
                        call.grad_out.sym_size(1) == call.forward.output.sym_size(2),
                    "[equivariant_attention_backward] grad_out: expected [", rows, ", ",
                    call.forward.output.sym_size(2), "], got ", call.grad_out.sym_sizes());
}

Tensor dispatch_attention(const AttentionCall& call) {
  static const auto op = find_operator<Forward>("nsimplex::equivariant_attention");
  const auto& [NSIMPLEX_ATTENTION_ARGUMENTS] = call;
  return op.call(NSIMPLEX_ATTENTION_ARGUMENTS);
}

AttentionGradients dispatch_attention_backward(const AttentionBackwardCall& call) {
  static const auto op = find_operator<Backward>("nsimplex::equivariant_attention_backward");
  const auto& [NSIMPLEX_ATTENTION_ARGUMENTS] = call.forward;
  return op.call(call.grad_out, NSIMPLEX_ATTENTION_ARGUMENTS);
}

namespace {

Tensor meta(const AttentionCall& call) {
  check_attention(call);
  return call.x.new_empty_symint({call.plan[0].sym_size(0), call.output.sym_size(2)});
}

AttentionGradients meta_backward(const AttentionBackwardCall& call) {
  check_attention_backward(call);
  const AttentionCall& own = call.forward;
  const auto like = [](const Tensor& tensor) {
    return tensor.new_empty_symint(tensor.sym_sizes());
  };
  return {like(own.x),        like(own.query), like(own.query_bias), like(own.key),
          like(own.key_bias), like(own.value), like(own.output)};
}

#define NSIMPLEX_ATTENTION_SCHEMA                                                          \
  "Tensor x, Tensor query, Tensor query_bias, Tensor key, Tensor key_bias, Tensor value, " \
  "Tensor output, Tensor? directions, Tensor[] plan, int[] parts, int heads, str "         \
  "form=\"softmax\", bool normalise=True, str features=\"relu\""

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  m.def("equivariant_attention(" NSIMPLEX_ATTENTION_SCHEMA ") -> Tensor", tags);
  m.def("equivariant_attention_backward(Tensor grad_out, " NSIMPLEX_ATTENTION_SCHEMA
        ") -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
        tags);
  m.def("equivariant_attention_reference(" NSIMPLEX_ATTENTION_SCHEMA ") -> Tensor", tags);
}

TORCH_LIBRARY_IMPL(nsimplex, Meta, m) {
  m.impl("equivariant_attention", TORCH_FN(flat_attention<&meta>));
  m.impl("equivariant_attention_backward", TORCH_FN(flat_attention_backward<&meta_backward>));
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("equivariant_attention", TORCH_FN(flat_attention<&reference_attention>));
  m.impl("equivariant_attention_backward",
         TORCH_FN(flat_attention_backward<&reference_attention_backward>));
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeImplicitAutograd, m) {
  m.impl("equivariant_attention_reference", TORCH_FN(flat_attention<&reference_attention>));
}

void check_rows(const char* name, const Tensor& weight, int64_t rows) {
  TORCH_CHECK_VALUE(weight.size(0) == rows, kAt, name, ": expected ", rows,
                    " matrices for the plan's classes, got ", weight.size(0));
}

}  // namespace
}  // namespace equivariant

at::Tensor equivariant_attention(const at::Tensor& x, const EquivariantAttentionWeights& weights,
                                 const EquivariantAttentionPlan& plan,
                                 const AttentionFormOptions& options) {
  using namespace equivariant;
  check_rows("query", weights.query, plan.query_weights);
  check_rows("key", weights.key, plan.key_weights);
  check_rows("value", weights.value, plan.class_count);
  return dispatch_attention({x, weights.query, weights.query_bias, weights.key, weights.key_bias,
                             weights.value, weights.output, options.directions, plan.tensors,
                             plan.parts, options.heads, name_of(options.form), options.normalise,
                             name_of(options.features)});
}

}  // namespace nsimplex
