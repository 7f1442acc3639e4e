// The cost of a call: numbers of tuples and operations.

#include <nsimplex/attention.h>
#include <torch/library.h>

#include <algorithm>
#include <vector>

#include "attention/common/attention_arguments.h"
#include "attention/common/attention_augment.h"

namespace nsimplex {
namespace dense {
namespace {

// The largest length for counts from sizes. Positions and windows around it stay within int64.
constexpr int64_t kMostQueries = int64_t{1} << 53;

// The number of tuples that a query sees: prod_m n_m(i).
double tuples_of_query(const Settings& settings, int64_t batch, int64_t i) {
  double product = 1;
  for (int m = 0; m < settings.order; ++m) {
    product *= static_cast<double>(settings.visible[m].of(batch, i).size());
  }
  return product;
}

// The sum of p(first) .. p(end - 1) for a polynomial p of degree `degree`, by its differences at `first`:
// sum_k C(end - first, k + 1) (Delta^k p)(first).
template <class Polynomial>
double sum_polynomial(int degree, int64_t first, int64_t end, Polynomial&& p) {
  std::vector<double> differences;
  for (int64_t i = first; i < end && std::ssize(differences) <= degree; ++i)
    differences.push_back(p(i));
  const auto count = static_cast<double>(end - first);
  double sum = 0, choices = 1;
  for (int k = 0; !differences.empty(); ++k) {
    choices *= (count - k) / (k + 1);
    sum += choices * differences.front();
    for (size_t i = 0; i + 1 < differences.size(); ++i)
      differences[i] = differences[i + 1] - differences[i];
    differences.pop_back();
  }
  return sum;
}

// sum_i prod_m n_m(i) for one batch entry. Between the queries at which a window meets an end of
// its axis, every n_m is linear in i. So the number of pieces does not depend on the number of
// queries. With documents or given positions, each query is a piece.
double count_tuples(const Settings& settings, int64_t queries, int64_t batch) {
  std::vector<int64_t> pieces{0, queries};
  for (int m = 0; m < settings.order; ++m) {
    const kernels::Visibility& visible = settings.visible[m];
    if (visible.document_begin || visible.positions) {
      double tuples = 0;
      for (int64_t i = 0; i < queries; ++i) tuples += tuples_of_query(settings, batch, i);
      return tuples;
    }
    const int64_t valid = visible.lengths ? visible.lengths[batch] : visible.length;
    // The queries at which the begin leaves 0 or reaches the end, and the end leaves 0 or reaches
    // the last key.
    const int64_t left = visible.left >= 0 ? visible.left - 1 : 0,
                  right = std::max<int64_t>(visible.right, 0);
    for (const int64_t edge :
         {left, valid + left, -right - 1, valid - right - 1, int64_t{-1}, valid - 1}) {
      for (const int64_t i : {edge - visible.offset, edge - visible.offset + 1}) {
        if (i > 0 && i < queries) pieces.push_back(i);
      }
    }
  }
  std::ranges::sort(pieces);
  double tuples = 0;
  for (size_t piece = 0; piece + 1 < pieces.size(); ++piece) {
    tuples += sum_polynomial(settings.order, pieces[piece], pieces[piece + 1],
                             [&](int64_t i) { return tuples_of_query(settings, batch, i); });
  }
  return tuples;
}

// The same from sizes only, for flop counters, which see no data.
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
  const auto fits = [](int64_t number) { return number >= 0 && number <= kMostQueries; };
  TORCH_CHECK_VALUE(fits(queries), "[attention_tuples] queries: expected 0 to 2^53, got ", queries);
  for (int m = 0; m < settings.order; ++m) {
    TORCH_CHECK_VALUE(fits(lengths[m]), "[attention_tuples] lengths: expected 0 to 2^53, got ",
                      lengths[m]);
    kernels::Visibility& visible = settings.visible[m];
    visible = {lengths[m], lengths[m] - queries, -1, -1, causal, nullptr};
    if (window) {
      // Larger windows have no effect.
      visible.left = std::min((*window)[2 * m], 2 * kMostQueries);
      visible.right = std::min((*window)[2 * m + 1], 2 * kMostQueries);
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
  at::Tensor positions;
  if (call.options.query_positions) {
    positions = rising_positions(call);
    for (int m = 0; m < settings.order; ++m) {
      settings.visible[m].positions = positions.const_data_ptr<int64_t>();
      settings.visible[m].position_stride = queries;
    }
  }
  double tuples = 0;
  if (valid.defined() || positions.defined()) {
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
