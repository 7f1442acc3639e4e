// The checks of the sparse operator: its arguments, and that its lists stay within their bounds.

#include "attention/sparse_attention/sparse_attention_check.h"

#include <ATen/Dispatch.h>
#include <ATen/core/List.h>

#include "attention/common/attention_arguments.h"
#include "attention/common/attention_check.h"
#include "kernels/common/sparse_problem.h"
#include "support/named_option.h"
#include "support/transforms.h"

namespace nsimplex::sparse {
TuplePattern pattern_of(const Options& options) {
  return named_option<TuplePattern>("sparse_attention", "pattern", options.pattern);
}

TupleReduce reduce_of(const Options& options) {
  return named_option<TupleReduce>("sparse_attention", "reduce", options.reduce);
}

const at::Tensor& rows_of(const Call& call, TuplePattern pattern) {
  return pattern == TuplePattern::list ? *call.offsets : call.indices;
}

Settings settings_of(const Call& call) {
  const Options& options = call.options;
  Settings settings;
  settings.order = static_cast<int>(call.keys.size());
  settings.pattern = pattern_of(options);
  settings.form = named_option<Form>("sparse_attention", "form", options.form);
  settings.reduce = reduce_of(options);
  settings.scale.logit = options.logit_scale.value_or(Scale::standard(call.query.size(3)).logit);
  settings.scale.output = options.output_scale.value_or(1.0);
  const at::Tensor& rows = rows_of(call, settings.pattern);
  settings.list_entries = rows.size(0);
  settings.list_groups = rows.size(1);
  return settings;
}

std::array<c10::SymInt, 4> output_sizes(const Call& call) {
  return {call.query.sym_size(0), call.query.sym_size(1), call.query.sym_size(2),
          call.values[0].sym_size(3)};
}

namespace {

using at::Tensor;
using dense::expect_shape;
using dense::holds;
using kernels::ListFault;

// Checks the batch entries and groups of a tensor that has one row per query.
void check_list_heads(const Call& call, const char* name, const Tensor& rows) {
  const c10::SymInt batch = call.query.sym_size(0), kv_heads = call.keys[0].sym_size(1);
  const c10::SymInt entries = rows.sym_size(0), groups = rows.sym_size(1);
  TORCH_CHECK_VALUE(holds(entries.sym_eq(1).sym_or(entries.sym_eq(batch))), "[sparse_attention] ",
                    name, ": expected 1 or ", batch, " batch entries, got shape ",
                    rows.sym_sizes());
  TORCH_CHECK_VALUE(holds(groups.sym_ge(1)) && holds((kv_heads % groups).sym_eq(0)),
                    "[sparse_attention] ", name, ": expected a number of lists that divides the ",
                    kv_heads, " key heads, got ", groups, " (shape ", rows.sym_sizes(), ")");
}

void check_list(const Call& call) {
  const Tensor& indices = call.indices;
  TORCH_CHECK_VALUE(indices.dim() == 2 && holds(indices.sym_size(1).sym_eq(call.keys.size())),
                    "[sparse_attention] indices: expected shape [tuples, ", call.keys.size(),
                    "], one key of every axis a tuple, got ", indices.sym_sizes());
  TORCH_CHECK_VALUE(call.offsets,
                    "[sparse_attention] offsets: expected [1 or B, G, Tq + 1] with pattern 'list', "
                    "got none");
  const Tensor& offsets = *call.offsets;
  TORCH_CHECK_VALUE(!is_mapped(offsets),
                    "[sparse_attention] offsets: expected the same for all that vmap maps over, "
                    "got a dimension of vmap; lists of different lengths go in a batch");
  TORCH_CHECK_TYPE(offsets.scalar_type() == at::kLong,
                   "[sparse_attention] offsets: expected int64, got ", offsets.scalar_type());
  TORCH_CHECK_VALUE(offsets.device() == call.query.device(),
                    "[sparse_attention] offsets: expected the query's device ", call.query.device(),
                    ", got ", offsets.device());
  const c10::SymInt queries = call.query.sym_size(2);
  TORCH_CHECK_VALUE(offsets.dim() == 3 && holds(offsets.sym_size(2).sym_eq(queries + 1)),
                    "[sparse_attention] offsets: expected shape [1 or B, G, ", queries + 1,
                    "] for ", queries, " queries, got ", offsets.sym_sizes());
  check_list_heads(call, "offsets", offsets);
}

void check_sets(const Call& call, TuplePattern pattern) {
  TORCH_CHECK_VALUE(!call.offsets, "[sparse_attention] offsets: expected none with pattern '",
                    name_of(pattern), "'");
  const Tensor& indices = call.indices;
  TORCH_CHECK_VALUE(indices.dim() == 4,
                    "[sparse_attention] indices: expected 4 dimensions [1 or B, G, rows, k] with "
                    "pattern '",
                    name_of(pattern), "', got shape ", indices.sym_sizes());
  check_list_heads(call, "indices", indices);
  const c10::SymInt queries = call.query.sym_size(2), rows = indices.sym_size(2);
  if (pattern == TuplePattern::product) {
    TORCH_CHECK_VALUE(holds(rows.sym_eq(queries)), "[sparse_attention] indices: expected ", queries,
                      " rows, one per query, got shape ", indices.sym_sizes());
    return;
  }
  for (size_t m = 0; m < call.keys.size(); ++m) {
    const c10::SymInt length = call.keys[m].sym_size(2);
    TORCH_CHECK_VALUE(holds(rows.sym_eq(length)), "[sparse_attention] indices: expected ", length,
                      " rows with pattern 'path', one per key of keys[", m, "], got shape ",
                      indices.sym_sizes());
  }
  TORCH_CHECK_VALUE(holds(queries.sym_le(rows)), "[sparse_attention] query: expected at most the ",
                    rows, " positions that have a set, got ", queries, " queries");
}

void check_weights(const Call& call, TupleReduce reduce) {
  const at::TensorList weights = call.options.weights();
  const c10::SymInt heads = call.keys[0].sym_size(1), width = call.values[0].sym_size(3);
  std::vector<std::vector<c10::SymInt>> expected;
  const auto layer = [&](const c10::SymInt& to, const c10::SymInt& from) {
    expected.push_back({heads, to, from});
    expected.push_back({heads, to});
  };
  if (reduce == TupleReduce::mlp) {
    layer(2 * width, width * call.keys.size());
    layer(width, 2 * width);
  } else if (reduce == TupleReduce::mlp_symmetric) {
    layer(2 * width, width);
    layer(2 * width, 2 * width);
    layer(width, 2 * width);
  }
  TORCH_CHECK_VALUE(weights.size() == expected.size(),
                    "[sparse_attention] reducer_weights: expected ", expected.size(),
                    " tensors with reduce '", name_of(reduce), "', got ", weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const std::string name = "reducer_weights[" + std::to_string(i) + "]";
    TORCH_CHECK_TYPE(weights[i].scalar_type() == call.query.scalar_type(), "[sparse_attention] ",
                     name, ": expected the query's dtype ", call.query.scalar_type(), ", got ",
                     weights[i].scalar_type());
    TORCH_CHECK_VALUE(weights[i].device() == call.query.device(), "[sparse_attention] ", name,
                      ": expected the query's device ", call.query.device(), ", got ",
                      weights[i].device());
    expect_shape("sparse_attention", name.c_str(), weights[i], expected[i]);
  }
}

// The index of an element of a contiguous tensor.
std::vector<int64_t> place(const Tensor& tensor, int64_t element) {
  std::vector<int64_t> position(tensor.dim());
  for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
    position[d] = element % tensor.size(d);
    element /= tensor.size(d);
  }
  return position;
}

// Throws the error for a wrong element of a list.
void refuse(const ListFault& fault, const char* name, const Tensor& tensor, int64_t least) {
  using Kind = ListFault::Kind;
  if (!fault) return;
  std::string expected;
  switch (fault.kind) {
    case Kind::first_offset:
      expected = "at least 0";
      break;
    case Kind::offset_order:
      expected = "at least the " + std::to_string(fault.limit) + " before it";
      break;
    case Kind::offset_range:
      expected = "at most the " + std::to_string(fault.limit) + " tuples of indices";
      break;
    case Kind::index_range:
      expected = std::to_string(least) + " to " + std::to_string(fault.limit - 1) + ", a key" +
                 (least < 0 ? " or -1 for none" : "");
      break;
    case Kind::index_behind_gap:
      expected = "no key behind a -1 of the same set";
      break;
    case Kind::none:
      break;
  }
  TORCH_CHECK_VALUE(false, "[sparse_attention] ", name, at::IntArrayRef(place(tensor, fault.at)),
                    ": expected ", expected, ", got ", fault.value);
}

}  // namespace

void check(const Call& call) {
  dense::check_tensors("sparse_attention", call.query, call.keys, call.values);
  const TuplePattern pattern = pattern_of(call.options);
  const Form form = named_option<Form>("sparse_attention", "form", call.options.form);
  const c10::SymInt dim = call.query.sym_size(3);
  const auto chunk = static_cast<int64_t>(call.keys.size()) + 1;
  TORCH_CHECK_VALUE(form == Form::product || holds((dim % chunk).sym_eq(0)),
                    "[sparse_attention] form: the determinant of order ", chunk - 1,
                    " needs a head dim divisible by ", chunk, ", got ", dim);
  dense::check_scale("sparse_attention", "logit_scale", call.options.logit_scale);
  dense::check_scale("sparse_attention", "output_scale", call.options.output_scale);
  const at::ScalarType type = call.indices.scalar_type();
  TORCH_CHECK_TYPE(type == at::kInt || type == at::kLong,
                   "[sparse_attention] indices: expected int32 or int64, got ", type);
  TORCH_CHECK_VALUE(call.indices.device() == call.query.device(),
                    "[sparse_attention] indices: expected the query's device ", call.query.device(),
                    ", got ", call.indices.device());
  if (pattern == TuplePattern::list) {
    check_list(call);
  } else {
    check_sets(call, pattern);
  }
  check_weights(call, reduce_of(call.options));
}

void check(const BackwardCall& call) {
  check(call.forward);
  const std::array<c10::SymInt, 4> sizes = output_sizes(call.forward);
  const c10::SymIntArrayRef rows(sizes.data(), 3);
  expect_shape("sparse_attention", "out", call.out, sizes);
  expect_shape("sparse_attention", "grad_out", call.grad_out, sizes);
  expect_shape("sparse_attention", "lse", call.lse, rows);
  if (call.grad_lse) expect_shape("sparse_attention", "grad_lse", *call.grad_lse, rows);
  const size_t inputs = 1 + 2 * call.forward.keys.size() + call.forward.options.weights().size();
  TORCH_CHECK_VALUE(call.wanted.size() == inputs, "[sparse_attention] output_mask: expected ",
                    inputs, " entries (query, keys, values, reducer weights), got ",
                    call.wanted.size());
}

void check_values(const Call& call) {
  const BelowTransforms below;
  if (!has_numbers(call.indices) || (call.offsets && !has_numbers(*call.offsets))) return;
  // vmap may map over tuples or sets. Those of all its calls are checked as one list.
  const Tensor indices = below_transforms(call.indices);
  const int64_t dims = call.indices.dim(), mapped = indices.dim() - dims;
  check_values(call, (mapped > 0 ? indices.flatten(0, mapped) : indices).contiguous(),
               call.offsets ? below_transforms(*call.offsets).contiguous() : Tensor());
}

void check_values(const Call& call, const Tensor& indices, const Tensor& offsets) {
  if (pattern_of(call.options) == TuplePattern::list) {
    refuse(kernels::find_offset_fault(offsets.const_data_ptr<int64_t>(),
                                      offsets.size(0) * offsets.size(1), call.query.size(2),
                                      indices.size(0)),
           "offsets", offsets, 0);
    std::array<int64_t, kernels::kMaxOrder> lengths{};
    for (size_t m = 0; m < call.keys.size(); ++m) lengths[m] = call.keys[m].size(2);
    AT_DISPATCH_INDEX_TYPES(indices.scalar_type(), "sparse_attention", [&] {
      refuse(kernels::find_tuple_fault(indices.const_data_ptr<index_t>(), indices.size(0),
                                       static_cast<int>(call.keys.size()), lengths.data()),
             "indices", indices, 0);
    });
    return;
  }
  int64_t length = call.keys[0].size(2);
  for (const Tensor& key : call.keys) length = std::min(length, key.size(2));
  AT_DISPATCH_INDEX_TYPES(indices.scalar_type(), "sparse_attention", [&] {
    const int64_t sets = indices.size(0) * indices.size(1) * indices.size(2);
    refuse(
        kernels::find_set_fault(indices.const_data_ptr<index_t>(), sets, indices.size(3), length),
        "indices", indices, -1);
  });
}

}  // namespace nsimplex::sparse
