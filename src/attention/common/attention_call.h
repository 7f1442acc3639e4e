// The one list of the options of `attention`, and its arguments in the order of the schema.

#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "support/flat_call.h"

// The arguments of `attention` in the order of the schema (support/flat_call.h). Lists are views of
// the caller's arguments.

// The options, in the order of the schema. A new option is added at the end, with a default; only
// then do saved graphs still work. `window` holds SymInts, so that a window derived from a length
// survives export with dynamic lengths.
#define NSIMPLEX_ATTENTION_OPTIONS(OPTION)                                    \
  OPTION(bool, causal, false, "bool causal=False")                            \
  OPTION(at::OptionalSymIntArrayRef, window, {}, "SymInt[]? window=None")     \
  OPTION(std::string_view, form, "product", "str form='product'")             \
  OPTION(std::string_view, reduce, "product", "str reduce='product'")         \
  OPTION(std::string_view, normalizer, "softmax", "str normalizer='softmax'") \
  OPTION(std::optional<double>, logit_scale, {}, "float? logit_scale=None")   \
  OPTION(std::optional<double>, output_scale, {}, "float? output_scale=None") \
  OPTION(OptionalInt64, key_lengths, {}, "Tensor? key_lengths=None")          \
  OPTION(OptionalTensorList, key_masks, {}, "Tensor[]? key_masks=None")       \
  OPTION(OptionalInt64, cu_seqlens, {}, "Tensor? cu_seqlens=None")            \
  OPTION(OptionalTensor, mask, {}, "Tensor? mask=None")                       \
  OPTION(OptionalTensor, sink, {}, "Tensor? sink=None")                       \
  OPTION(std::string_view, distinct, "none", "str distinct='none'")           \
  OPTION(at::OptionalIntArrayRef, augment, {}, "int[]? augment=None")         \
  OPTION(double, dropout_p, 0.0, "float dropout_p=0.")                        \
  OPTION(std::optional<c10::SymInt>, seed, {}, "SymInt? seed=None")           \
  OPTION(OptionalInt64, query_positions, {}, "Tensor? query_positions=None")  \
  OPTION(OptionalTensor, order_bias, {}, "Tensor? order_bias=None")

#define NSIMPLEX_OPTIONS_SCHEMA NSIMPLEX_SCHEMA_OF(NSIMPLEX_ATTENTION_OPTIONS)

namespace nsimplex::dense {

struct Options {
  NSIMPLEX_OPTION_FIELDS(NSIMPLEX_ATTENTION_OPTIONS)
};

struct Call {
  at::Tensor query;       ///< [B, Hq, Tq, D]
  at::TensorList keys;    ///< N of [B, Hk, T_m, D]
  at::TensorList values;  ///< N of [B, Hk, T_m, Dv]
  Options options;

  static auto inputs(auto& self) { return std::tie(self.query, self.keys, self.values); }
  static auto fields(auto& self) {
    return std::tuple_cat(inputs(self), Options::option_fields(self.options));
  }
  /// The arguments that have gradients.
  auto differentiable() const { return std::tie(query, keys, values, options.mask, options.sink); }

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
  /// The gradients that are computed: query, keys..., values..., mask, sink.
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

using Output = std::tuple<at::Tensor, at::Tensor>;  ///< out, lse

/// Gradients of the query, the keys, the values, the mask and the sink. A gradient that is not
/// wanted is an empty tensor of shape [0].
using Gradients = std::tuple<at::Tensor, std::vector<at::Tensor>, std::vector<at::Tensor>,
                             at::Tensor, at::Tensor>;

/// Calls the registered operators through the dispatcher.
Output dispatch(const Call& call);
Output dispatch_reference(const Call& call);
Gradients dispatch(const BackwardCall& call);

/// The version by ATen calls (attention_reference.cpp): any dtype and device, differentiable any
/// number of times.
Output reference_forward(const Call& call);
Gradients reference_backward(const BackwardCall& call);

}  // namespace nsimplex::dense
