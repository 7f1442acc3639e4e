// Schema and public functions of the dense operator.
//
// Shapes, dtypes and memory order of the dense operator's results, for torch.compile and export.

#include <ATen/ops/empty.h>
#include <nsimplex/attention.h>
#include <torch/library.h>

#include <cmath>

#include "attention/common/attention_arguments.h"
#include "support/named_option.h"
#include "support/operator.h"

namespace nsimplex {
namespace dense {
namespace {

#define NSIMPLEX_ADD_OPTION(type, name, initial, schema, paths) \
  if (((paths) & path) != 0) names.emplace_back(#name);

// The options that a path takes, for Python.
struct AttentionPaths : torch::CustomClassHolder {
  static std::vector<std::string> options(const std::string& name) {
    const Path path = named_option<Path>("attention", "path", name);
    std::vector<std::string> names;
    NSIMPLEX_ATTENTION_OPTIONS(NSIMPLEX_ADD_OPTION)
    return names;
  }
};

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.class_<AttentionPaths>("AttentionPaths").def_static("options", &AttentionPaths::options);
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  m.def("attention(Tensor query, Tensor[] keys, Tensor[] values, *" NSIMPLEX_OPTIONS_SCHEMA
        ") -> (Tensor out, Tensor lse)",
        tags);
  m.def(
      "attention_reference(Tensor query, Tensor[] keys, Tensor[] values, "
      "*" NSIMPLEX_OPTIONS_SCHEMA ") -> (Tensor out, Tensor lse)",
      tags);
  m.def(
      "attention_backward(Tensor query, Tensor[] keys, Tensor[] values, Tensor out, Tensor lse, "
      "Tensor grad_out, Tensor? grad_lse, bool[] output_mask, *" NSIMPLEX_OPTIONS_SCHEMA
      ") -> (Tensor grad_query, Tensor[] grad_keys, Tensor[] grad_values, Tensor grad_mask, "
      "Tensor grad_sink)",
      tags);
  m.def(
      "attention_pair_masks_backward(Tensor query, Tensor[] keys, Tensor[] values, Tensor out, "
      "Tensor lse, Tensor grad_out, Tensor? grad_lse, bool[] output_mask, "
      "*" NSIMPLEX_OPTIONS_SCHEMA ") -> Tensor[] grad_pair_masks",
      tags);
}

}  // namespace

Output dispatch(const Call& call) {
  static const Operator<Output, Call> attention("nsimplex::attention");
  return attention(call);
}

Output dispatch_reference(const Call& call) {
  static const Operator<Output, Call> reference("nsimplex::attention_reference");
  return reference(call);
}

Gradients dispatch(const BackwardCall& call) {
  static const Operator<Gradients, BackwardCall> backward("nsimplex::attention_backward");
  return backward(call);
}

PairMaskGradients dispatch(const PairMasksBackwardCall& call) {
  static const Operator<PairMaskGradients, PairMasksBackwardCall> backward(
      "nsimplex::attention_pair_masks_backward");
  return backward(call);
}

}  // namespace dense

Scale Scale::standard(int64_t head_dim) {
  return {1.0 / std::sqrt(static_cast<double>(head_dim)), 1.0};
}

Scale Scale::unit(int64_t order, int64_t head_dim, int64_t value_dim, Reduce reduce) {
  const double n = static_cast<double>(order);
  const double logit = std::pow(static_cast<double>(head_dim), -0.5 * (n + 1));
  switch (reduce) {
    case Reduce::product:
      return {logit, std::pow(static_cast<double>(value_dim), -0.5 * (n - 1))};
    case Reduce::sum:
      return {logit, 1.0 / n};
    case Reduce::mean:
      return {logit, 1.0};
  }
  TORCH_CHECK_VALUE(false, "[attention] reduce: not an enumerator of Reduce");
}

AttentionOutput attention(const at::Tensor& query, at::TensorList keys, at::TensorList values,
                          const AttentionOptions& options) {
  auto [out, lse] = dense::with_call(query, keys, values, options,
                                     [](const dense::Call& call) { return dense::dispatch(call); });
  return {dense::swap_heads(options.layout, out), std::move(lse)};
}

AttentionOutput attention_reference(const at::Tensor& query, at::TensorList keys,
                                    at::TensorList values, const AttentionOptions& options) {
  auto [out, lse] = dense::with_call(query, keys, values, options, [](const dense::Call& call) {
    return dense::dispatch_reference(call);
  });
  return {dense::swap_heads(options.layout, out), std::move(lse)};
}

}  // namespace nsimplex

namespace nsimplex::dense {
namespace {

Output meta_forward(const Call& call) {
  check(call);
  const std::array<c10::SymInt, 4> sizes = output_sizes(call);
  const at::TensorOptions options = call.query.options();
  return {empty_in_order(call.query, sizes, options),
          at::empty_symint(c10::SymIntArrayRef(sizes.data(), 3),
                           options.dtype(accumulate_type(call.query.scalar_type())))};
}

Gradients meta_backward(const BackwardCall& call) {
  check(call);
  size_t next = 0;
  const auto gradient = [&](const at::Tensor& input) {
    return call.wanted[next++] ? empty_in_order(input, input.sym_sizes(), input.options())
                               : at::empty({0}, input.options());
  };
  Gradients gradients;
  std::get<0>(gradients) = gradient(call.forward.query);
  for (const at::Tensor& key : call.forward.keys) std::get<1>(gradients).push_back(gradient(key));
  for (const at::Tensor& value : call.forward.values)
    std::get<2>(gradients).push_back(gradient(value));
  const auto option_gradient = [&](const OptionalTensor& input) {
    return call.wanted[next++] ? at::empty_symint(input->sym_sizes(), input->options())
                               : at::empty({0}, call.forward.query.options());
  };
  std::get<3>(gradients) = option_gradient(call.forward.options.mask);
  std::get<4>(gradients) = option_gradient(call.forward.options.sink);
  return gradients;
}

PairMaskGradients meta_pair_masks_backward(const PairMasksBackwardCall& call) {
  check(call);
  PairMaskGradients gradients;
  size_t next = 0;
  for (const at::Tensor& mask : call.forward.pair_masks()) {
    gradients.push_back(call.wanted[next++] ? at::empty_symint(mask.sym_sizes(), mask.options())
                                            : at::empty({0}, call.forward.query.options()));
  }
  return gradients;
}

TORCH_LIBRARY_IMPL(nsimplex, Meta, m) {
  m.impl("attention", TORCH_FN(flat<&meta_forward>));
  m.impl("attention_reference", TORCH_FN(flat<&meta_forward>));
  m.impl("attention_backward", TORCH_FN(flat<&meta_backward>));
  m.impl("attention_pair_masks_backward", TORCH_FN(flat<&meta_pair_masks_backward>));
}

}  // namespace
}  // namespace nsimplex::dense
