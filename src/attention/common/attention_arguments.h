// Declares the checks of attention arguments and their translation into settings.

#pragma once

#include <nsimplex/attention.h>

#include <array>
#include <vector>

#include "attention/common/attention_call.h"
#include "attention/common/attention_names.h"
#include "kernels/common/attention_problem.h"

// Operators take [B, heads, T, D]; Layout::bthd is a transposed view of that.

namespace nsimplex::dense {

/// From the layout to [B, heads, T, D], or back. A tensor without 4 dimensions is left unchanged
/// for the checks of the operator.
inline at::Tensor swap_heads(Layout layout, const at::Tensor& tensor) {
  return layout == Layout::bthd && tensor.dim() == 4 ? tensor.transpose(1, 2) : tensor;
}

/// Query, keys and values as [B, heads, T, D].
struct HeadsFirst {
  HeadsFirst(Layout layout, const at::Tensor& query, at::TensorList keys, at::TensorList values)
      : query(swap_heads(layout, query)) {
    for (const at::Tensor& key : keys) this->keys.push_back(swap_heads(layout, key));
    for (const at::Tensor& value : values) this->values.push_back(swap_heads(layout, value));
  }

  at::Tensor query;
  std::vector<at::Tensor> keys, values;
};

/// Rejects a call that the operator does not define or support, with one line that names the
/// argument, the expectation and the value. Sizes are symbolic, so that meta tensors pass the same
/// checks.
void check(const Call& call);
void check(const BackwardCall& call);
void check(const PairMasksBackwardCall& call);

/// Rejects key lengths outside [0, T_m] and boundaries of documents that do not rise from 0 to T.
/// It reads the values, so it waits for devices other than the CPU.
void check_values(const Call& call);

/// Rejects a tensor of more than 2^40 numbers. No memory holds it, but an expanded view may have
/// this size. Workspaces are multiples of tensors, and their sizes must fit into int64.
void require_addressable(const char* operation, const char* argument, const at::Tensor& tensor);
void require_addressable(const char* operation, const char* list, at::TensorList tensors);

/// The options that are names. Rejects unknown names.
struct Names {
  Form form;
  Reduce reduce;
  Normalizer normalizer;
  Distinct distinct;
};
Names names_of(const Options& options);

/// The settings of a checked call as numbers.
struct Settings {
  int order = 1;
  Form form = Form::product;
  Reduce reduce = Reduce::product;
  Normalizer normalizer = Normalizer::softmax;
  Distinct distinct = Distinct::none;
  Scale scale;
  double softcap = 0.0;  ///< 0: none
  double dropout_p = 0.0;
  int64_t seed = 0;
  /// Windows and the causal mask, without limits that depend on data.
  std::array<kernels::Visibility, kernels::kMaxOrder> visible;
};
Settings settings_of(const Call& call);

/// Valid keys per axis and batch entry, int64 [N, B] contiguous; undefined if every key is valid.
/// If an entry has an axis without keys, it has no tuple. Then all its lengths are 0, so that none
/// of its keys is read.
at::Tensor valid_keys(const Call& call);

/// Begin and end of the document of each query, int64 [2, Tq] contiguous, on the CPU. The call must
/// have documents.
at::Tensor document_bounds(const Call& call);

/// The largest distance of a query's position from the first key, in both directions: 2^53.
inline constexpr int64_t kMostPosition = int64_t{1} << 53;

/// Positions of the queries among the keys, int64 [B, Tq]. The call must have query_positions.
at::Tensor positions_of_queries(const Call& call);

/// The same for the kernel: contiguous, on the CPU, and never decreasing from one query to the
/// next.
at::Tensor rising_positions(const Call& call);

/// Sizes of the output: [B, Hq, Tq, Dv].
std::array<c10::SymInt, 4> output_sizes(const Call& call);

/// Whether the heads of the tensor lie inside its rows: [B, T, H, D] in memory, as projections
/// produce them.
bool heads_inside(const at::Tensor& tensor);

/// An uninitialised [B, H, T, channels] tensor in the memory order of `like`.
at::Tensor empty_in_order(const at::Tensor& like, c10::SymIntArrayRef sizes,
                          const at::TensorOptions& options);

/// A [B, H, T, channels] result in the dtype and memory order of `like`.
at::Tensor in_order_of(const at::Tensor& like, const at::Tensor& result);

/// The dtype of lse and of all sums: double for double, otherwise float.
inline at::ScalarType accumulate_type(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

/// The tensor in a type that accumulates. Finite numbers stay finite: the smallest double acts as a
/// mask like the smallest float, and does not exclude a tuple.
at::Tensor accumulated(const at::Tensor& tensor, at::ScalarType type);

/// The seed of a call: the given one, or a random one if dropout needs it.
std::optional<c10::SymInt> seed_of(const AttentionOptions& options);

/// Turns the value of a public option into that of the operator. An empty list is none.
template <class To, class From>
void pass_option(To& to, const From& from) {
  if constexpr (std::is_enum_v<From>) {
    to = name_of(from);
  } else if constexpr (requires { from.empty(); }) {
    if (!from.empty()) to = at::ArrayRef<typename From::value_type>(from);
  } else {
    to = from;
  }
}
inline void pass_option(at::OptionalSymIntArrayRef&, const std::vector<Window>&) {}  // with_call

#define NSIMPLEX_PASS_OPTION(type, name, ...) \
  if constexpr (requires { given.name; }) pass_option(flat.name, given.name);

/// The public options that have the name of the operator's.
template <class Given>
Options pass_options(const Given& given) {
  Options flat;
  NSIMPLEX_ATTENTION_OPTIONS(NSIMPLEX_PASS_OPTION)
  return flat;
}

/// Flattens the public options and returns function(call). The tensors of the call are [B, heads,
/// T, D] for every layout.
template <class Function>
auto with_call(const at::Tensor& query, at::TensorList keys, at::TensorList values,
               const AttentionOptions& options, Function&& function) {
  const HeadsFirst tensors(options.layout, query, keys, values);
  c10::SmallVector<c10::SymInt, 8> window;
  const size_t given = options.window.size();
  TORCH_CHECK_VALUE(given <= 1 || given == keys.size(),
                    "[attention] window: expected one for all axes or ", keys.size(), ", got ",
                    given);
  if (given > 0) {
    for (size_t m = 0; m < keys.size(); ++m) {
      const Window& each = options.window[given == 1 ? 0 : m];
      window.push_back(each.left);
      window.push_back(each.right);
    }
  }
  Options flat = pass_options(options);
  flat.seed = seed_of(options);
  if (given > 0) flat.window = c10::SymIntArrayRef(window);
  if (options.scale) {
    flat.logit_scale = options.scale->logit;
    flat.output_scale = options.scale->output;
  }
  return function(Call{tensors.query, tensors.keys, tensors.values, std::move(flat)});
}

}  // namespace nsimplex::dense
