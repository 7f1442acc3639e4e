// What a call costs: tuples and operations.

#include <nsimplex/attention_cost.h>
#include <torch/library.h>

#include "attention/dense/dense_arguments.h"
#include "attention/dense/dense_augment.h"
#include "attention/dense/dense_flatten.h"

namespace nsimplex {
namespace dense {
namespace {

// sum_i prod_m n_m(i) for one batch entry.
double count_tuples(const Settings& settings, int64_t queries, int64_t batch) {
  double tuples = 0;
  for (int64_t i = 0; i < queries; ++i) {
    double product = 1;
    for (int m = 0; m < settings.order; ++m) {
      product *= static_cast<double>(settings.visible[m].of(batch, i).size());
    }
    tuples += product;
  }
  return tuples;
}

// The same from sizes alone, for flop counters that see no data.
double attention_tuples(int64_t queries, at::IntArrayRef lengths, bool causal,
                        at::OptionalIntArrayRef window) {
  Settings settings;
  settings.order = static_cast<int>(lengths.size());
  TORCH_CHECK_VALUE(settings.order >= 1 && settings.order <= kernels::kMaxOrder,
                    "[attention_tuples] lengths: expected 1 to ", kernels::kMaxOrder, ", got ",
                    lengths.size());
  TORCH_CHECK_VALUE(!window || window->size() == 2 * lengths.size(),
                    "[attention_tuples] window: expected ", 2 * lengths.size(), " numbers, got ",
                    window->size());
  for (int m = 0; m < settings.order; ++m) {
    kernels::Visibility& visible = settings.visible[m];
    visible = {lengths[m], lengths[m] - queries, -1, -1, causal, nullptr};
    if (window) {
      visible.left = (*window)[2 * m];
      visible.right = (*window)[2 * m + 1];
    }
  }
  return count_tuples(settings, queries, 0);
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "attention_tuples(int queries, int[] lengths, *, bool causal=False, int[]? window=None) -> "
      "float",
      TORCH_FN(attention_tuples), {at::Tag::pt2_compliant_tag});
}

double flops(const Call& call) {
  check(call);
  if (augmented(call)) {
    double sum = 0;
    for (const PartialCall& part : partial_calls(call)) sum += flops(part.call());
    return sum;
  }
  Settings settings = settings_of(call);
  at::Tensor valid = valid_keys(call);
  if (valid.defined()) valid = valid.cpu();
  const int64_t batch = call.query.size(0), queries = call.query.size(2);
  for (int m = 0; m < settings.order && valid.defined(); ++m) {
    settings.visible[m].lengths = valid.const_data_ptr<int64_t>() + m * batch;
  }
  at::Tensor documents;
  if (call.options.cu_seqlens) {
    check_values(call);
    documents = document_bounds(call);
    for (int m = 0; m < settings.order; ++m) {
      settings.visible[m].document_begin = documents.const_data_ptr<int64_t>();
      settings.visible[m].document_end = documents.const_data_ptr<int64_t>() + queries;
    }
  }
  double tuples = 0;
  if (valid.defined()) {
    for (int64_t b = 0; b < batch; ++b) tuples += count_tuples(settings, queries, b);
  } else {
    tuples = static_cast<double>(batch) * count_tuples(settings, queries, 0);
  }
  const double channels = static_cast<double>(call.query.size(3) + call.values[0].size(3));
  return 2.0 * channels * static_cast<double>(call.query.size(1)) * tuples;
}

}  // namespace
}  // namespace dense

double attention_flops(const at::Tensor& query, at::TensorList keys, at::TensorList values,
                       const AttentionOptions& options) {
  return dense::with_call(query, keys, values, options, dense::flops);
}

}  // namespace nsimplex
