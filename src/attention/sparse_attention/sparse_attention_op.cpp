// Schema and public functions of the sparse operator.
//
// Shapes, dtypes and memory order of the sparse operator's results, for torch.compile and export.

#include <ATen/ATen.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "attention/common/attention_arguments.h"
#include "attention/sparse_attention/sparse_attention_check.h"
#include "attention/sparse_attention/sparse_attention_reference.h"
#include "support/operator.h"

namespace nsimplex {
namespace sparse {
namespace {

using at::Tensor;

#define NSIMPLEX_SPARSE_INPUTS \
  "Tensor query, Tensor[] keys, Tensor[] values, Tensor indices, Tensor? offsets"

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  for (const char* name : {"sparse_attention", "sparse_attention_reference"}) {
    const std::string schema = std::string(name) + "(" NSIMPLEX_SPARSE_INPUTS
                                                   "=None, *" NSIMPLEX_SPARSE_SCHEMA
                                                   ") -> (Tensor out, Tensor lse)";
    m.def(schema.c_str(), tags);
  }
  // The backward of the reference is an operator too, because its steps depend on the contents of
  // the list, which a traced graph does not know.
  for (const char* name : {"sparse_attention_backward", "sparse_attention_reference_backward"}) {
    const std::string schema =
        std::string(name) +
        "(" NSIMPLEX_SPARSE_INPUTS
        ", Tensor out, Tensor lse, Tensor grad_out, Tensor? grad_lse, bool[] output_mask, "
        "*" NSIMPLEX_SPARSE_SCHEMA
        ") -> (Tensor grad_query, Tensor[] grad_keys, Tensor[] grad_values, Tensor[] "
        "grad_reducer_weights)";
    m.def(schema.c_str(), tags);
  }
}

// Flattens the public options and returns function(call).
template <class Function>
auto with_call(const Tensor& query, at::TensorList keys, at::TensorList values,
               const Tensor& indices, const OptionalTensor& offsets,
               const SparseAttentionOptions& options, Function&& function) {
  const dense::HeadsFirst tensors(options.layout, query, keys, values);
  Options flattened{.pattern = name_of(options.pattern),
                    .form = name_of(options.form),
                    .reduce = name_of(options.reduce)};
  if (!options.reducer_weights.empty()) flattened.reducer_weights = options.reducer_weights;
  if (options.scale) {
    flattened.logit_scale = options.scale->logit;
    flattened.output_scale = options.scale->output;
  }
  return function(Call{tensors.query, tensors.keys, tensors.values, indices, offsets, flattened});
}

// The number of tuples of all queries, summed over the batch entries and heads of each list.
double count_tuples(const Call& call) {
  check(call);
  if (call.query.is_cpu()) check_values(call);
  const Settings settings = settings_of(call);
  const int64_t entries = settings.list_entries == 1 ? call.query.size(0) : 1;
  const int64_t heads = call.query.size(1) / settings.list_groups;
  double tuples = 0;
  for (int64_t entry = 0; entry < settings.list_entries; ++entry) {
    for (int64_t group = 0; group < settings.list_groups; ++group) {
      tuples += TupleList(call, settings, entry, group).counts().sum().item<double>();
    }
  }
  return tuples * static_cast<double>(entries * heads);
}

}  // namespace

Output dispatch(const Call& call) {
  static const Operator<Output, Call> attention("nsimplex::sparse_attention");
  return attention(call);
}

Output dispatch_reference(const Call& call) {
  static const Operator<Output, Call> reference("nsimplex::sparse_attention_reference");
  return reference(call);
}

Gradients dispatch(const BackwardCall& call) {
  static const Operator<Gradients, BackwardCall> backward("nsimplex::sparse_attention_backward");
  return backward(call);
}

Gradients dispatch_reference(const BackwardCall& call) {
  static const Operator<Gradients, BackwardCall> backward(
      "nsimplex::sparse_attention_reference_backward");
  return backward(call);
}

}  // namespace sparse

AttentionOutput sparse_attention(const at::Tensor& query, at::TensorList keys,
                                 at::TensorList values, const at::Tensor& indices,
                                 const std::optional<at::Tensor>& offsets,
                                 const SparseAttentionOptions& options) {
  auto [out, lse] =
      sparse::with_call(query, keys, values, indices, offsets, options,
                        [](const sparse::Call& call) { return sparse::dispatch(call); });
  return {dense::swap_heads(options.layout, out), std::move(lse)};
}

AttentionOutput sparse_attention_reference(const at::Tensor& query, at::TensorList keys,
                                           at::TensorList values, const at::Tensor& indices,
                                           const std::optional<at::Tensor>& offsets,
                                           const SparseAttentionOptions& options) {
  auto [out, lse] =
      sparse::with_call(query, keys, values, indices, offsets, options,
                        [](const sparse::Call& call) { return sparse::dispatch_reference(call); });
  return {dense::swap_heads(options.layout, out), std::move(lse)};
}

double sparse_attention_tuples(const at::Tensor& query, at::TensorList keys, at::TensorList values,
                               const at::Tensor& indices, const std::optional<at::Tensor>& offsets,
                               const SparseAttentionOptions& options) {
  return sparse::with_call(query, keys, values, indices, offsets, options, sparse::count_tuples);
}

}  // namespace nsimplex

namespace nsimplex::sparse {
namespace {

Output meta_forward(const Call& call) {
  check(call);
  const std::array<c10::SymInt, 4> sizes = output_sizes(call);
  const at::TensorOptions options = call.query.options();
  const at::ScalarType wide = dense::accumulate_type(call.query.scalar_type());
  return {dense::empty_in_order(call.query, sizes, options),
          at::empty_symint(c10::SymIntArrayRef(sizes.data(), 3), options.dtype(wide))};
}

Gradients meta_backward(const BackwardCall& call) {
  check(call);
  size_t next = 0;
  const auto in_order = [&](const at::Tensor& input) {
    return call.wanted[next++] ? dense::empty_in_order(input, input.sym_sizes(), input.options())
                               : at::empty({0}, input.options());
  };
  Gradients gradients;
  auto& [query, keys, values, weights] = gradients;
  query = in_order(call.forward.query);
  for (const at::Tensor& key : call.forward.keys) keys.push_back(in_order(key));
  for (const at::Tensor& value : call.forward.values) values.push_back(in_order(value));
  for (const at::Tensor& weight : call.forward.options.weights()) {
    weights.push_back(call.wanted[next++] ? at::empty_symint(weight.sym_sizes(), weight.options())
                                          : at::empty({0}, weight.options()));
  }
  return gradients;
}

TORCH_LIBRARY_IMPL(nsimplex, Meta, m) {
  m.impl("sparse_attention", TORCH_FN(flat<&meta_forward>));
  m.impl("sparse_attention_reference", TORCH_FN(flat<&meta_forward>));
  m.impl("sparse_attention_backward", TORCH_FN(flat<&meta_backward>));
  m.impl("sparse_attention_reference_backward", TORCH_FN(flat<&meta_backward>));
}

}  // namespace
}  // namespace nsimplex::sparse
