// The options and arguments of `sparse_attention` in the order of its schema.

#pragma once

#include "attention/common/attention_call.h"

// The arguments of `sparse_attention` in the order of the schema (support/flat_call.h). Lists are
// views of the caller's arguments.

#define NSIMPLEX_SPARSE_OPTIONS(OPTION)                                             \
  OPTION(std::string_view, pattern, "list", "str pattern='list'")                   \
  OPTION(std::string_view, form, "product", "str form='product'")                   \
  OPTION(std::string_view, reduce, "product", "str reduce='product'")               \
  OPTION(OptionalTensorList, reducer_weights, {}, "Tensor[]? reducer_weights=None") \
  OPTION(std::optional<double>, logit_scale, {}, "float? logit_scale=None")         \
  OPTION(std::optional<double>, output_scale, {}, "float? output_scale=None")

#define NSIMPLEX_SPARSE_SCHEMA NSIMPLEX_SCHEMA_OF(NSIMPLEX_SPARSE_OPTIONS)

namespace nsimplex::sparse {

using dense::Output;

struct Options {
  NSIMPLEX_OPTION_FIELDS(NSIMPLEX_SPARSE_OPTIONS)

  at::TensorList weights() const { return reducer_weights.value_or(at::TensorList()); }
};

struct Call {
  at::Tensor query;       ///< [B, Hq, Tq, D]
  at::TensorList keys;    ///< N of [B, Hk, T_m, D]
  at::TensorList values;  ///< N of [B, Hk, T_m, Dv]
  at::Tensor indices;
  OptionalTensor offsets;
  Options options;

  static auto inputs(auto& self) {
    return std::tie(self.query, self.keys, self.values, self.indices, self.offsets);
  }
  static auto fields(auto& self) {
    return std::tuple_cat(inputs(self), Options::option_fields(self.options));
  }
  /// The arguments that have gradients.
  auto differentiable() const {
    return std::tuple_cat(std::tie(query, keys, values), std::tuple(options.weights()));
  }

  /// Whether an input that has a gradient satisfies the predicate.
  template <class Predicate>
  bool any_input(Predicate&& predicate) const {
    return any_tensor_of(differentiable(), predicate);
  }
};

struct BackwardCall {
  Call forward;
  at::Tensor out;           ///< [B, Hq, Tq, Dv]
  at::Tensor lse;           ///< [B, Hq, Tq]
  at::Tensor grad_out;      ///< like out
  OptionalTensor grad_lse;  ///< like lse; absent: zero
  /// The gradients that are computed: query, keys..., values..., reducer weights...
  c10::List<bool> wanted{};

  static auto fields(auto& self) {
    return std::tuple_cat(Call::inputs(self.forward),
                          std::tie(self.out, self.lse, self.grad_out, self.grad_lse, self.wanted),
                          Options::option_fields(self.forward.options));
  }

  template <class Predicate>
  bool any_tensor(Predicate&& predicate) const {
    return forward.any_input(predicate) ||
           any_tensor_of(std::tie(out, lse, grad_out, grad_lse), predicate);
  }
};

/// Gradients of the query, the keys, the values and the reducer weights. A gradient that is not
/// wanted is an empty tensor of shape [0].
using Gradients = std::tuple<at::Tensor, std::vector<at::Tensor>, std::vector<at::Tensor>,
                             std::vector<at::Tensor>>;

/// Calls the registered operators through the dispatcher.
Output dispatch(const Call& call);
Output dispatch_reference(const Call& call);
Gradients dispatch(const BackwardCall& call);
Gradients dispatch_reference(const BackwardCall& call);

/// The version by ATen calls (sparse_attention_reference.cpp): any dtype and device, differentiable
/// any number of times.
Output reference_forward(const Call& call);
Gradients reference_backward(const BackwardCall& call);

}  // namespace nsimplex::sparse
