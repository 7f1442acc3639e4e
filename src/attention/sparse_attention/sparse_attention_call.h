#pragma once

#include "attention/common/attention_call.h"

// The sparse operator's arguments as the schema lists them, bundled so that the flat list is
// written once for the forward and once for the backward operator. Everything here is a view of the
// caller's arguments.

#define NSIMPLEX_SPARSE_SCHEMA                                               \
  "str pattern='list', str form='product', str reduce='product', Tensor[]? " \
  "reducer_weights=None, float? logit_scale=None, float? output_scale=None"

namespace nsimplex::sparse {

using dense::OptionalTensor;
using dense::OptionalTensorList;
using dense::Output;

/// The keyword arguments, in the schema's order.
struct Options {
  std::string_view pattern = "list", form = "product", reduce = "product";
  OptionalTensorList reducer_weights;
  std::optional<double> logit_scale, output_scale;

  at::TensorList weights() const { return reducer_weights.value_or(at::TensorList()); }
};

struct Call {
  const at::Tensor& query;  ///< [B, Hq, Tq, D]
  at::TensorList keys;      ///< N of [B, Hk, T_m, D]
  at::TensorList values;    ///< N of [B, Hk, T_m, Dv]
  const at::Tensor& indices;
  const OptionalTensor& offsets;
  Options options;

  /// Whether an input that has a gradient satisfies the predicate.
  template <class Predicate>
  bool any_input(Predicate&& predicate) const {
    const auto any = [&](at::TensorList list) {
      return std::any_of(list.begin(), list.end(), predicate);
    };
    return predicate(query) || any(keys) || any(values) || any(options.weights());
  }
};

struct BackwardCall {
  Call forward;
  const at::Tensor& out;           ///< [B, Hq, Tq, Dv]
  const at::Tensor& lse;           ///< [B, Hq, Tq]
  const at::Tensor& grad_out;      ///< like out
  const OptionalTensor& grad_lse;  ///< like lse; absent: zero
  /// Which gradients are computed: query, keys..., values..., reducer weights...
  const c10::List<bool>& wanted;

  template <class Predicate>
  bool any_tensor(Predicate&& predicate) const {
    return forward.any_input(predicate) || predicate(out) || predicate(lse) ||
           predicate(grad_out) || (grad_lse && predicate(*grad_lse));
  }
};

/// Gradients of the query, the keys, the values and the reducer weights; an unwanted one is an
/// empty tensor of shape [0].
using Gradients = std::tuple<at::Tensor, std::vector<at::Tensor>, std::vector<at::Tensor>,
                             std::vector<at::Tensor>>;

/// Adapts a kernel that takes a Call to the dispatcher's flat argument list.
template <auto kernel>
auto flat(const at::Tensor& query, at::TensorList keys, at::TensorList values,
          const at::Tensor& indices, const OptionalTensor& offsets, std::string_view pattern,
          std::string_view form, std::string_view reduce, OptionalTensorList reducer_weights,
          std::optional<double> logit_scale, std::optional<double> output_scale) {
  return kernel(Call{query,
                     keys,
                     values,
                     indices,
                     offsets,
                     {pattern, form, reduce, reducer_weights, logit_scale, output_scale}});
}

/// The same for a kernel that takes a BackwardCall.
template <auto kernel>
Gradients flat_backward(const at::Tensor& query, at::TensorList keys, at::TensorList values,
                        const at::Tensor& indices, const OptionalTensor& offsets,
                        const at::Tensor& out, const at::Tensor& lse, const at::Tensor& grad_out,
                        const OptionalTensor& grad_lse, const c10::List<bool>& wanted,
                        std::string_view pattern, std::string_view form, std::string_view reduce,
                        OptionalTensorList reducer_weights, std::optional<double> logit_scale,
                        std::optional<double> output_scale) {
  return kernel(BackwardCall{{query,
                              keys,
                              values,
                              indices,
                              offsets,
                              {pattern, form, reduce, reducer_weights, logit_scale, output_scale}},
                             out,
                             lse,
                             grad_out,
                             grad_lse,
                             wanted});
}

/// Calls the registered operators through the dispatcher.
Output dispatch(const Call& call);
Output dispatch_reference(const Call& call);
Gradients dispatch(const BackwardCall& call);
Gradients dispatch_reference(const BackwardCall& call);

/// ATen version (sparse_attention_reference.cpp): any dtype and device, differentiable any number
/// of times.
Output reference_forward(const Call& call);
Gradients reference_backward(const BackwardCall& call);

}  // namespace nsimplex::sparse
