#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>
#include <c10/util/OptionalArrayRef.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

// The dense operator's arguments as the schema lists them, bundled so that the flat list is written
// once for the forward and once for the backward operator. Everything here is a view of the
// caller's arguments.

// Written whole, options of later versions included: an argument added later would break saved
// graphs. `window` holds SymInts so that one derived from a length survives export with dynamic
// lengths.
#define NSIMPLEX_OPTIONS_SCHEMA                                                          \
  "bool causal=False, SymInt[]? window=None, str form='product', str reduce='product', " \
  "str normalizer='softmax', float? logit_scale=None, float? output_scale=None, "        \
  "Tensor? key_lengths=None, Tensor[]? key_masks=None, Tensor? cu_seqlens=None, "        \
  "Tensor? mask=None, Tensor? sink=None, str distinct='none', int[]? augment=None, "     \
  "float dropout_p=0., SymInt? seed=None"

namespace nsimplex::dense {

using OptionalTensor = std::optional<at::Tensor>;
using OptionalTensorList = std::optional<at::TensorList>;

/// Lengths and boundaries may come as int32, as other libraries have them. Whoever reads them from
/// a call gets int64.
struct OptionalInt64 : OptionalTensor {
  OptionalInt64(const OptionalTensor& given)  // NOLINT: stands where a tensor is given
      : OptionalTensor(given && given->scalar_type() == at::kInt ? given->to(at::kLong) : given) {}
};

/// The keyword arguments, in the schema's order.
struct Options {
  bool causal = false;
  at::OptionalSymIntArrayRef window;
  std::string_view form = "product", reduce = "product", normalizer = "softmax";
  std::optional<double> logit_scale, output_scale;
  OptionalInt64 key_lengths;
  OptionalTensorList key_masks;
  OptionalInt64 cu_seqlens;
  const OptionalTensor& mask;
  const OptionalTensor& sink;
  std::string_view distinct = "none";
  at::OptionalIntArrayRef augment;
  double dropout_p = 0.0;
  std::optional<c10::SymInt> seed;
};

struct Call {
  const at::Tensor& query;  ///< [B, Hq, Tq, D]
  at::TensorList keys;      ///< N of [B, Hk, T_m, D]
  at::TensorList values;    ///< N of [B, Hk, T_m, Dv]
  Options options;

  /// Whether an input that has a gradient satisfies the predicate.
  template <class Predicate>
  bool any_input(Predicate&& predicate) const {
    const auto option = [&](const OptionalTensor& tensor) { return tensor && predicate(*tensor); };
    return predicate(query) || std::any_of(keys.begin(), keys.end(), predicate) ||
           std::any_of(values.begin(), values.end(), predicate) || option(options.mask) ||
           option(options.sink);
  }
};

struct BackwardCall {
  Call forward;
  const at::Tensor& out;           ///< [B, Hq, Tq, Dv]
  const at::Tensor& lse;           ///< [B, Hq, Tq]
  const at::Tensor& grad_out;      ///< like out
  const OptionalTensor& grad_lse;  ///< like lse; absent: zero
  /// Which gradients are computed: query, keys..., values..., mask, sink.
  const c10::List<bool>& wanted;

  template <class Predicate>
  bool any_tensor(Predicate&& predicate) const {
    return forward.any_input(predicate) || predicate(out) || predicate(lse) ||
           predicate(grad_out) || (grad_lse && predicate(*grad_lse));
  }
};

using Output = std::tuple<at::Tensor, at::Tensor>;  ///< out, lse

/// Gradients of the query, the keys, the values, the mask and the sink; an unwanted one is an empty
/// tensor of shape [0].
using Gradients = std::tuple<at::Tensor, std::vector<at::Tensor>, std::vector<at::Tensor>,
                             at::Tensor, at::Tensor>;

/// Adapts a kernel that takes a Call to the dispatcher's flat argument list.
template <auto kernel>
Output flat(const at::Tensor& query, at::TensorList keys, at::TensorList values, bool causal,
            at::OptionalSymIntArrayRef window, std::string_view form, std::string_view reduce,
            std::string_view normalizer, std::optional<double> logit_scale,
            std::optional<double> output_scale, const OptionalTensor& key_lengths,
            OptionalTensorList key_masks, const OptionalTensor& cu_seqlens,
            const OptionalTensor& mask, const OptionalTensor& sink, std::string_view distinct,
            at::OptionalIntArrayRef augment, double dropout_p, std::optional<c10::SymInt> seed) {
  return kernel(
      Call{query,
           keys,
           values,
           {causal, window, form, reduce, normalizer, logit_scale, output_scale, key_lengths,
            key_masks, cu_seqlens, mask, sink, distinct, augment, dropout_p, seed}});
}

/// The same for a kernel that takes a BackwardCall.
template <auto kernel>
Gradients flat_backward(const at::Tensor& query, at::TensorList keys, at::TensorList values,
                        const at::Tensor& out, const at::Tensor& lse, const at::Tensor& grad_out,
                        const OptionalTensor& grad_lse, const c10::List<bool>& wanted, bool causal,
                        at::OptionalSymIntArrayRef window, std::string_view form,
                        std::string_view reduce, std::string_view normalizer,
                        std::optional<double> logit_scale, std::optional<double> output_scale,
                        const OptionalTensor& key_lengths, OptionalTensorList key_masks,
                        const OptionalTensor& cu_seqlens, const OptionalTensor& mask,
                        const OptionalTensor& sink, std::string_view distinct,
                        at::OptionalIntArrayRef augment, double dropout_p,
                        std::optional<c10::SymInt> seed) {
  return kernel(BackwardCall{
      {query,
       keys,
       values,
       {causal, window, form, reduce, normalizer, logit_scale, output_scale, key_lengths, key_masks,
        cu_seqlens, mask, sink, distinct, augment, dropout_p, seed}},
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

/// The ATen version (attention_reference.cpp): any dtype and device, differentiable any number of
/// times.
Output reference_forward(const Call& call);
Gradients reference_backward(const BackwardCall& call);

}  // namespace nsimplex::dense
