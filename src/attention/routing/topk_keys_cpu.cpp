// topk_keys by ATen calls for any dtype and device, and on the CPU by the SIMD kernel over torch's
// threads.

#include <ATen/ATen.h>
#include <torch/library.h>

#include "attention/common/attention_arguments.h"
#include "attention/common/attention_kernel.h"
#include "attention/routing/selection.h"
#include "attention/routing/topk_keys_call.h"
#include "kernels/cpu/topk/topk.h"
#include "support/infinity.h"
#include "support/log.h"
#include "support/parallel.h"
#include "support/working_memory.h"

namespace nsimplex::routing {
namespace {

using at::Tensor;

Scoring scoring_of(const Call& call) {
  Scoring scoring;
  if (call.weights) scoring.weights = *call.weights;
  if (call.softmax()) scoring.lse = call.lse ? *call.lse : pair_lse(call);
  return scoring;
}

// Only the pairs of the table get a score. A softmax is over these pairs.
Output of_candidates(const Call& call, int64_t k) {
  const at::ScalarType type = dense::accumulate_type(call.query.scalar_type());
  const int64_t queries = call.query.size(2), channels = call.query.size(3);
  const double scale = call.scale.value_or(Scale::standard(channels).logit);
  const Tensor query = call.query.to(type) * scale, key = call.key.to(type);
  // In ascending order, so that the lower index of equal scores comes first.
  const Tensor table = sorted_table(*call.candidates).expand({query.size(0), -1, -1});
  std::vector<Tensor> indices, scores;
  const int64_t chunk = gathered_chunk(query, table.size(2));
  for (int64_t first = 0; first == 0 || first < queries; first += chunk) {
    const int64_t rows = std::min(chunk, queries - first);
    const auto part = [&](const OptionalTensor& tensor) {
      return tensor->to(type).narrow(2, first, rows).transpose(1, 2).unsqueeze(-1);
    };
    const Tensor places = table.narrow(1, first, rows);
    Tensor admissible = places >= 0;
    if (call.causal) {
      const Tensor last =
          at::arange(first, first + rows, places.options()) + (call.key.size(2) - queries);
      admissible = admissible & (places <= last.unsqueeze(-1));
    }
    if (call.key_lengths) {
      admissible = admissible & (places < call.key_lengths->view({-1, 1, 1}));
    }
    const Tensor logits =
        gathered_logits(query.narrow(2, first, rows), key, places)
            .masked_fill(admissible.logical_not().unsqueeze(2), -kInfinity);  // [B, c, H, n]
    Tensor lse;
    if (call.softmax()) lse = call.lse ? part(call.lse) : logits.logsumexp(-1, true);
    Tensor each = activate(logits, lse);
    if (call.weights) each = each * part(call.weights);
    RunningBest best(k);
    best.add(each.sum(2).masked_fill(admissible.logical_not(), -kInfinity), places);
    auto [chosen, values] = best.finish();
    indices.push_back(std::move(chosen));
    scores.push_back(std::move(values));
  }
  return {at::cat(indices, 1), at::cat(scores, 1)};
}

}  // namespace

Output reference(const Call& call) {
  check(call);
  check_values(call);
  const int64_t k = call.k.guard_int(__FILE__, __LINE__);
  if (call.candidates) return of_candidates(call, k);
  const auto [indices, scores] = with_pairs(
      call, [&](const dense::Call& pairs) { return best_tuples(pairs, k, scoring_of(call)); });
  return {indices, scores};
}

namespace {

using at::Tensor;

template <class R>
void run(const kernels::TopkProblem<R>& problem) {
  const kernels::TopkPlan plan = kernels::plan_topk(problem);
  const dense::KernelMemory memory = dense::aligned_memory(plan.workspace_bytes, plan.scratch_bytes,
                                                           std::max(plan.tasks[0], plan.tasks[1]));
  const Tensor buffer = working_memory(memory.total());
  char* const workspace = static_cast<char*>(buffer.mutable_data_ptr());
  char* const scratch = workspace + memory.workspace_bytes;
  for (int phase = 0; phase < kernels::TopkPlan::phases; ++phase) {
    parallel_tasks(plan.tasks[phase], [&](int64_t task, int worker) {
      kernels::run_topk(problem, phase, task, workspace, scratch + worker * memory.scratch_bytes);
    });
  }
}

template <class R>
Output kernel(const Call& call) {
  constexpr at::ScalarType kType = c10::CppTypeToScalarType<R>::value;
  dense::require_addressable("topk_keys", "query", call.query);
  dense::require_addressable("topk_keys", "key", call.key);
  // In the kernel's dtype. Inputs of 16 bits are copied, which costs O(T) only.
  const Tensor query = dense::with_contiguous_channels(call.query.to(kType));
  const Tensor key = dense::with_contiguous_channels(call.key.to(kType));
  const auto rows = [&](const OptionalTensor& tensor) {
    return tensor ? tensor->to(kType).contiguous() : Tensor();
  };
  const Tensor weights = rows(call.weights);
  Tensor lse = rows(call.lse);
  if (call.softmax() && !lse.defined()) lse = pair_lse(call).contiguous();
  const Tensor lengths = call.key_lengths ? call.key_lengths->contiguous() : Tensor();
  const Tensor adjacency = call.adjacency ? call.adjacency->contiguous() : Tensor();

  kernels::TopkProblem<R> problem;
  problem.batch = query.size(0);
  problem.heads = query.size(1);
  problem.kv_heads = key.size(1);
  problem.queries = query.size(2);
  problem.dim = query.size(3);
  problem.k = call.k.guard_int(__FILE__, __LINE__);
  problem.logit_scale = call.scale.value_or(Scale::standard(problem.dim).logit);
  problem.query = dense::input_rows<R>(query);
  problem.key = dense::input_rows<R>(key);
  problem.visible = {.length = key.size(2),
                     .offset = key.size(2) - query.size(2),
                     .causal = call.causal,
                     .lengths = lengths.defined() ? lengths.const_data_ptr<int64_t>() : nullptr};
  if (weights.defined()) problem.weights = weights.const_data_ptr<R>();
  if (lse.defined()) problem.lse = lse.const_data_ptr<R>();
  if (adjacency.defined()) {
    problem.adjacency = adjacency.const_data_ptr<bool>();
    problem.adjacency_query_stride = adjacency.size(2);
    problem.adjacency_batch_stride =
        adjacency.size(0) == 1 ? 0 : adjacency.size(1) * adjacency.size(2);
  }
  const Tensor indices =
      at::empty({problem.batch, problem.queries, problem.k}, query.options().dtype(at::kLong));
  const Tensor scores = at::empty(indices.sizes(), query.options());
  problem.indices = indices.mutable_data_ptr<int64_t>();
  problem.scores = scores.mutable_data_ptr<R>();
  run(problem);
  return {indices, scores};
}

Output cpu(const Call& call) {
  if (call.candidates) {
    warn_fallback("topk_keys", "the CPU kernel has no tables of candidates");
    return reference(call);
  }
  check(call);
  check_values(call);
  return call.query.scalar_type() == at::kDouble ? kernel<double>(call) : kernel<float>(call);
}

TORCH_LIBRARY_IMPL(nsimplex, CPU, m) { m.impl("topk_keys", TORCH_FN(flat<&cpu>)); }

}  // namespace
}  // namespace nsimplex::routing
