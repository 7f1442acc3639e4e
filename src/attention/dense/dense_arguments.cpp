#include "attention/dense/dense_arguments.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>
#include <c10/core/SymBool.h>

#include <algorithm>
#include <cmath>

namespace nsimplex::dense {
namespace {

// Enumerators by name, in the order of the public enums.
constexpr std::string_view kForms[] = {"product", "determinant"};
constexpr std::string_view kReducers[] = {"product", "sum", "mean"};
constexpr std::string_view kNormalizers[] = {"softmax", "softmax_sink", "sigmoid", "relu"};
constexpr std::string_view kDistinct[] = {"none", "axes", "with_query"};

// A size that is known is compared; one that is not becomes an assertion of the traced graph.
bool holds(const c10::SymBool& condition) { return condition.expect_true(__FILE__, __LINE__); }

template <size_t size>
int index_of(const char* argument, std::string_view name, const std::string_view (&names)[size]) {
  for (size_t i = 0; i < size; ++i) {
    if (names[i] == name) return static_cast<int>(i);
  }
  std::string known;
  for (const std::string_view& each : names) known.append(known.empty() ? "" : ", ").append(each);
  TORCH_CHECK_VALUE(false, "[attention] ", argument, ": expected one of ", known, ", got '", name,
                    "'");
}

// Options that the schema has and no kernel computes yet.
void check_built(const Options& options) {
  const auto refuse = [](bool asked, const char* argument) {
    TORCH_CHECK_NOT_IMPLEMENTED(!asked, "[attention] ", argument,
                                ": not supported by this version");
  };
  refuse(index_of("form", options.form, kForms) != 0, "form='determinant'");
  refuse(index_of("normalizer", options.normalizer, kNormalizers) != 0,
         "a normalizer but 'softmax'");
  refuse(index_of("distinct", options.distinct, kDistinct) != 0, "distinct");
  refuse(options.key_masks.has_value(), "key_masks");
  refuse(options.cu_seqlens.has_value(), "cu_seqlens");
  refuse(options.mask.has_value(), "mask");
  refuse(options.sink.has_value(), "sink");
  refuse(options.augment.has_value(), "augment");
  refuse(options.dropout_p != 0.0, "dropout_p");
  refuse(options.seed.has_value(), "seed");
}

void check_axis(const char* name, size_t axis, const at::Tensor& tensor, const at::Tensor& query,
                const at::Tensor& first_key) {
  TORCH_CHECK_VALUE(tensor.dim() == 4, "[attention] ", name, "[", axis,
                    "]: expected 4 dimensions [batch, heads, length, channels], got shape ",
                    tensor.sym_sizes());
  TORCH_CHECK_TYPE(tensor.scalar_type() == query.scalar_type(), "[attention] ", name, "[", axis,
                   "]: expected the query's dtype ", query.scalar_type(), ", got ",
                   tensor.scalar_type());
  TORCH_CHECK_VALUE(tensor.device() == query.device(), "[attention] ", name, "[", axis,
                    "]: expected the query's device ", query.device(), ", got ", tensor.device());
  const auto expect = [&](const char* what, int dimension, const c10::SymInt& expected) {
    TORCH_CHECK_VALUE(holds(tensor.sym_size(dimension).sym_eq(expected)), "[attention] ", name, "[",
                      axis, "]: expected ", what, " ", expected, ", got ",
                      tensor.sym_size(dimension), " (shape ", tensor.sym_sizes(), ")");
  };
  expect("batch", 0, query.sym_size(0));
  expect("heads", 1, first_key.sym_size(1));
}

void check_tensors(const Call& call) {
  const at::Tensor& query = call.query;
  const size_t order = call.keys.size();
  TORCH_CHECK_VALUE(order >= 1 && order <= kernels::kMaxOrder, "[attention] keys: expected 1 to ",
                    kernels::kMaxOrder, " key tensors, got ", order);
  TORCH_CHECK_VALUE(call.values.size() == order,
                    "[attention] values: expected one for each of the ", order, " keys, got ",
                    call.values.size());
  TORCH_CHECK_VALUE(
      query.dim() == 4,
      "[attention] query: expected 4 dimensions [batch, heads, length, channels], got "
      "shape ",
      query.sym_sizes());
  const at::ScalarType type = query.scalar_type();
  TORCH_CHECK_TYPE(
      type == at::kFloat || type == at::kDouble || type == at::kBFloat16 || type == at::kHalf,
      "[attention] query: expected float32, float64, bfloat16 or float16, got ", type);
  TORCH_CHECK_VALUE(holds(query.sym_size(3).sym_ge(1)),
                    "[attention] query: expected head dim of at least 1, got shape ",
                    query.sym_sizes());
  for (size_t m = 0; m < order; ++m) {
    const at::Tensor &key = call.keys[m], &value = call.values[m];
    check_axis("keys", m, key, query, call.keys[0]);
    check_axis("values", m, value, query, call.keys[0]);
    TORCH_CHECK_VALUE(holds(key.sym_size(3).sym_eq(query.sym_size(3))), "[attention] keys[", m,
                      "]: expected head dim ", query.sym_size(3), ", got ", key.sym_size(3),
                      " (shape ", key.sym_sizes(), ")");
    TORCH_CHECK_VALUE(holds(value.sym_size(2).sym_eq(key.sym_size(2))), "[attention] values[", m,
                      "]: expected length ", key.sym_size(2), " of keys[", m, "], got ",
                      value.sym_size(2), " (shape ", value.sym_sizes(), ")");
    TORCH_CHECK_VALUE(holds(value.sym_size(3)
                                .sym_eq(call.values[0].sym_size(3))
                                .sym_and(value.sym_size(3).sym_ge(1))),
                      "[attention] values[", m,
                      "]: expected the value dim of values[0], at least 1, got ", value.sym_size(3),
                      " (shape ", value.sym_sizes(), ")");
  }
  const c10::SymInt heads = query.sym_size(1), kv_heads = call.keys[0].sym_size(1);
  TORCH_CHECK_VALUE(holds(kv_heads.sym_ge(1)) && holds((heads % kv_heads).sym_eq(0)),
                    "[attention] query: expected a number of heads divisible by the ", kv_heads,
                    " key heads, got ", heads);
}

void check_window(const Call& call) {
  if (!call.options.window) return;
  const c10::SymIntArrayRef window = *call.options.window;
  const size_t order = call.keys.size();
  TORCH_CHECK_VALUE(window.size() == 2 * order, "[attention] window: expected ", 2 * order,
                    " numbers (left, right for each of ", order, " axes), got ", window.size());
  for (size_t m = 0; m < order; ++m) {
    const c10::SymInt &left = window[2 * m], &right = window[2 * m + 1];
    TORCH_CHECK_VALUE(
        holds(left.sym_ge(1).sym_or(left.sym_eq(-1))), "[attention] window[", m,
        "]: left counts the query's own position and is at least 1, or -1 for unbounded; got ",
        left);
    TORCH_CHECK_VALUE(holds(right.sym_ge(-1)), "[attention] window[", m,
                      "]: right is at least 0, or -1 for unbounded; got ", right);
  }
}

void check_key_lengths(const Call& call) {
  if (!call.options.key_lengths) return;
  const at::Tensor& lengths = *call.options.key_lengths;
  const int64_t order = static_cast<int64_t>(call.keys.size());
  TORCH_CHECK_TYPE(lengths.scalar_type() == at::kLong,
                   "[attention] key_lengths: expected int64, got ", lengths.scalar_type());
  TORCH_CHECK_VALUE(lengths.device() == call.query.device(),
                    "[attention] key_lengths: expected the query's device ", call.query.device(),
                    ", got ", lengths.device());
  const bool per_axis = lengths.dim() == 2;
  TORCH_CHECK_VALUE(
      (lengths.dim() == 1 || (per_axis && holds(lengths.sym_size(0).sym_eq(order)))) &&
          holds(lengths.sym_size(-1).sym_eq(call.query.sym_size(0))),
      "[attention] key_lengths: expected shape [", call.query.sym_size(0), "] or [", order, ", ",
      call.query.sym_size(0), "], got ", lengths.sym_sizes());
}

void check_scale(const char* name, const std::optional<double>& scale) {
  TORCH_CHECK_VALUE(!scale || std::isfinite(*scale), "[attention] ", name,
                    ": expected a finite number, got ", *scale);
}

}  // namespace

void check(const Call& call) {
  check_tensors(call);
  index_of("reduce", call.options.reduce, kReducers);
  check_built(call.options);
  check_window(call);
  check_key_lengths(call);
  check_scale("logit_scale", call.options.logit_scale);
  check_scale("output_scale", call.options.output_scale);
}

void check(const BackwardCall& call) {
  check(call.forward);
  const std::array<c10::SymInt, 4> sizes = output_sizes(call.forward);
  const auto expect = [&](const char* name, const at::Tensor& tensor, size_t dimensions) {
    bool same = tensor.dim() == static_cast<int64_t>(dimensions);
    for (size_t d = 0; same && d < dimensions; ++d) {
      same = holds(tensor.sym_size(static_cast<int64_t>(d)).sym_eq(sizes[d]));
    }
    TORCH_CHECK_VALUE(same, "[attention_backward] ", name, ": expected shape ",
                      c10::SymIntArrayRef(sizes.data(), dimensions), ", got ", tensor.sym_sizes());
  };
  expect("out", call.out, 4);
  expect("grad_out", call.grad_out, 4);
  expect("lse", call.lse, 3);
  if (call.grad_lse) expect("grad_lse", *call.grad_lse, 3);
  const size_t inputs = 3 + 2 * call.forward.keys.size();
  TORCH_CHECK_VALUE(call.wanted.size() == inputs, "[attention_backward] output_mask: expected ",
                    inputs, " entries (query, keys, values, mask, sink), got ", call.wanted.size());
  const auto differentiable = [&](size_t entry, const OptionalTensor& input, const char* name) {
    TORCH_CHECK_VALUE(!call.wanted[entry] || (input && input->is_floating_point()),
                      "[attention_backward] output_mask[", entry, "]: the call has no floating ",
                      name, " to differentiate by");
  };
  differentiable(inputs - 2, call.forward.options.mask, "mask");
  differentiable(inputs - 1, call.forward.options.sink, "sink");
}

void check_key_length_values(const Call& call) {
  if (!call.options.key_lengths) return;
  const at::Tensor lengths = call.options.key_lengths->contiguous();
  const int64_t batch = call.query.size(0), order = static_cast<int64_t>(call.keys.size());
  const int64_t* data = lengths.const_data_ptr<int64_t>();
  for (int64_t m = 0; m < order; ++m) {
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t length = data[(lengths.dim() == 2 ? m * batch : 0) + b];
      TORCH_CHECK_VALUE(length >= 0 && length <= call.keys[m].size(2),
                        "[attention] key_lengths: axis ", m, ", batch entry ", b,
                        ": expected 0 to ", call.keys[m].size(2), ", got ", length);
    }
  }
}

Settings settings_of(const Call& call) {
  const Options& options = call.options;
  Settings settings;
  settings.order = static_cast<int>(call.keys.size());
  settings.reduce = static_cast<Reduce>(index_of("reduce", options.reduce, kReducers));
  settings.scale.logit = options.logit_scale.value_or(Scale::standard(call.query.size(3)).logit);
  settings.scale.output = options.output_scale.value_or(1.0);
  for (int m = 0; m < settings.order; ++m) {
    kernels::Visibility& visible = settings.visible[m];
    visible.length = call.keys[m].size(2);
    visible.offset = visible.length - call.query.size(2);
    visible.causal = options.causal;
    if (options.window) {
      // A window wider than the axis is cut to it: positions plus windows cannot overflow then.
      visible.left = std::min((*options.window)[2 * m].guard_int(__FILE__, __LINE__),
                              std::max<int64_t>(visible.length, 1));
      visible.right =
          std::min((*options.window)[2 * m + 1].guard_int(__FILE__, __LINE__), call.query.size(2));
    }
  }
  return settings;
}

at::Tensor valid_keys(const Call& call) {
  if (!call.options.key_lengths) return {};
  const at::Tensor lengths = call.options.key_lengths->expand(
      {static_cast<int64_t>(call.keys.size()), call.query.size(0)});
  return at::where(lengths.gt(0).all(0), lengths, 0).contiguous();
}

std::array<c10::SymInt, 4> output_sizes(const Call& call) {
  return {call.query.sym_size(0), call.query.sym_size(1), call.query.sym_size(2),
          call.values[0].sym_size(3)};
}

bool heads_inside(const at::Tensor& tensor) {
  return TORCH_GUARD_OR_FALSE(tensor.sym_stride(1).sym_lt(tensor.sym_stride(2)));
}

at::Tensor empty_in_order(const at::Tensor& like, c10::SymIntArrayRef sizes,
                          const at::TensorOptions& options) {
  if (!heads_inside(like)) return at::empty_symint(sizes, options);
  const c10::SymInt swapped[] = {sizes[0], sizes[2], sizes[1], sizes[3]};
  return at::empty_symint(swapped, options).transpose(1, 2);
}

}  // namespace nsimplex::dense
