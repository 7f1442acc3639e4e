// The one list of the options of `attention`, and its arguments in the order of the schema.

#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "support/flat_call.h"
#include "support/names.h"

// The arguments of `attention` in the order of the schema (support/flat_call.h). Lists are views of
// the caller's arguments.

// The options, in the order of the schema. A new option is added at the end, with a default; only
// then do saved graphs still work. `window` holds SymInts, so that a window derived from a length
// survives export with dynamic lengths. The last column names the paths (`Path` below) that take
// the option. With none, which is kReference, the reference computes it and all paths refuse it.
#define NSIMPLEX_ATTENTION_OPTIONS(OPTION)                                                 \
  OPTION(bool, causal, false, "bool causal=False", kKernels | kComposed | kRanks | kLayer) \
  OPTION(at::OptionalSymIntArrayRef, window, {}, "SymInt[]? window=None",                  \
         kKernels | kComposed | kRanks | kLayer)                                           \
  OPTION(std::string_view, form, "product", "str form='product'",                          \
         kCpu | kTriton | kFaces | kWeights | kCaches | kRanks | kLayer)                   \
  OPTION(std::string_view, reduce, "product", "str reduce='product'",                      \
         kCpu | kTriton | kComposed | kCaches | kRanks | kLayer)                           \
  OPTION(std::string_view, normalizer, "softmax", "str normalizer='softmax'",              \
         kCpu | kTriton | kParts | kWeights | kCaches | kRanks | kLayer)                   \
  OPTION(std::optional<double>, logit_scale, {}, "float? logit_scale=None",                \
         kKernels | kComposed | kCaches | kRanks | kLayer)                                 \
  OPTION(std::optional<double>, output_scale, {}, "float? output_scale=None",              \
         kKernels | kComposed | kCaches | kRanks | kLayer)                                 \
  OPTION(OptionalInt64, key_lengths, {}, "Tensor? key_lengths=None",                       \
         kCpu | kTriton | kComposed | kSlots | kShards)                                    \
  OPTION(OptionalTensorList, key_masks, {}, "Tensor[]? key_masks=None",                    \
         kCpu | kTriton | kComposed | kSlots | kShards)                                    \
  OPTION(OptionalInt64, cu_seqlens, {}, "Tensor? cu_seqlens=None",                         \
         kCpu | kTriton | kComposed | kShards)                                             \
  OPTION(OptionalTensor, mask, {}, "Tensor? mask=None",                                    \
         kCpu | kTriton | kFaces | kWeights | kSlots)                                      \
  OPTION(OptionalTensor, sink, {}, "Tensor? sink=None",                                    \
         kCpu | kTriton | kParts | kWeights | kCaches | kRanks)                            \
  OPTION(std::string_view, distinct, "none", "str distinct='none'",                        \
         kCpu | kTriton | kComposed | kSlots | kShards | kLayer)                           \
  OPTION(at::OptionalIntArrayRef, augment, {}, "int[]? augment=None",                      \
         kCpu | kCubins | kParts | kCaches | kShards | kLayer)                             \
  OPTION(double, dropout_p, 0.0, "float dropout_p=0.",                                     \
         kCpu | kTriton | kComposed | kSlots | kShards)                                    \
  OPTION(std::optional<c10::SymInt>, seed, {}, "SymInt? seed=None",                        \
         kKernels | kComposed | kCaches | kRanks)                                          \
  OPTION(OptionalInt64, query_positions, {}, "Tensor? query_positions=None",               \
         kCpu | kTriton | kComposed)                                                       \
  OPTION(OptionalTensor, order_bias, {}, "Tensor? order_bias=None",                        \
         kCpu | kCubins | kParts | kCaches | kShards)                                      \
  OPTION(std::optional<double>, softcap, {}, "float? softcap=None",                        \
         kCpu | kTriton | kComposed | kCaches | kRanks | kLayer)                           \
  OPTION(OptionalTensor, alibi_slopes, {}, "Tensor? alibi_slopes=None",                    \
         kCpu | kTriton | kFaces | kWeights | kCaches)                                     \
  OPTION(OptionalTensorList, pair_masks, {}, "Tensor[]? pair_masks=None",                  \
         kCpu | kTriton | kFaces | kWeights)

#define NSIMPLEX_OPTIONS_SCHEMA NSIMPLEX_SCHEMA_OF(NSIMPLEX_ATTENTION_OPTIONS)

namespace nsimplex::dense {

/// Who computes a call, or changes it first, and takes some options only. Another option that is
/// set goes to the reference, or is refused by its name.
enum Path : unsigned {
  kReference = 0,
  kCpu = 1,       ///< the CPU kernel
  kCubins = 2,    ///< GPU kernels that were compiled ahead of time
  kTriton = 4,    ///< GPU kernels in Triton
  kParts = 8,     ///< the ordinary calls of a call with rows of ones
  kFaces = 16,    ///< face_attention
  kWeights = 32,  ///< attention_weights
  kRing = 64,     ///< KeyValueCache
  kSlots = 128,   ///< StaticCache and PagedCache
  kShards = 256,  ///< a sequence that is divided among ranks
  kAround = 512,  ///< one axis of such a sequence that goes round the ranks
  kLayer = 1024,  ///< the arguments of an attention layer
  kKernels = kCpu | kCubins | kTriton,
  kComposed = kParts | kFaces | kWeights,
  kCaches = kRing | kSlots,
  kRanks = kShards | kAround,
};

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
  at::TensorList pair_masks() const { return options.pair_masks.value_or(at::TensorList()); }

  /// The arguments that have gradients.
  auto differentiable() const {
    return std::tuple_cat(std::tie(query, keys, values, options.mask, options.sink),
                          std::make_tuple(pair_masks()));
  }

  /// Whether an input that has a gradient satisfies the predicate.
  template <class Predicate>
  bool any_input(Predicate&& predicate) const {
    return any_tensor_of(differentiable(), predicate);
  }
};

/// No gradient of the query, keys, values, mask and sink.
inline c10::List<bool> unwanted(const Call& call) {
  c10::List<bool> none;
  none.resize(3 + 2 * call.keys.size(), false);
  return none;
}

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

/// Asks for the gradients of pair_masks: `wanted` has an entry for each. They have an operator of
/// their own, because the results of the backward operator in saved programs cannot change.
struct PairMasksBackwardCall : BackwardCall {};

using Output = std::tuple<at::Tensor, at::Tensor>;  ///< out, lse

/// Gradients of the query, the keys, the values, the mask and the sink. A gradient that is not
/// wanted is an empty tensor of shape [0].
using Gradients = std::tuple<at::Tensor, std::vector<at::Tensor>, std::vector<at::Tensor>,
                             at::Tensor, at::Tensor>;

using PairMaskGradients = std::vector<at::Tensor>;

/// Calls the registered operators through the dispatcher.
Output dispatch(const Call& call);
Output dispatch_reference(const Call& call);
Gradients dispatch(const BackwardCall& call);
PairMaskGradients dispatch(const PairMasksBackwardCall& call);

/// The version by ATen calls (attention_reference.cpp): any dtype and device, differentiable any
/// number of times.
Output reference_forward(const Call& call);
Gradients reference_backward(const BackwardCall& call);
PairMaskGradients reference_pair_masks_backward(const PairMasksBackwardCall& call);

/// The first option that is set, that is, other than its default, and that a path does not take;
/// null if there is none.
const char* unhandled(const Options& options, Path path);

/// Refuses such an option by name.
void require_handled(const char* function, const Options& options, Path path);

}  // namespace nsimplex::dense

namespace nsimplex {

template <>
inline constexpr Names<dense::Path, 11> kNames<dense::Path>{{{"cpu", dense::kCpu},
                                                             {"cubins", dense::kCubins},
                                                             {"triton", dense::kTriton},
                                                             {"parts", dense::kParts},
                                                             {"faces", dense::kFaces},
                                                             {"weights", dense::kWeights},
                                                             {"ring", dense::kRing},
                                                             {"slots", dense::kSlots},
                                                             {"shards", dense::kShards},
                                                             {"around", dense::kAround},
                                                             {"layer", dense::kLayer}}};

}  // namespace nsimplex
