// Attention over lists of tuples on the CPU, class by class. The loops over pairs and tables are
// kernels.

#include <ATen/ATen.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

#include "equivariant/attention/class_attention.h"
#include "equivariant/attention/equivariant_attention_layer.h"
#include "equivariant/attention/table_problems.h"
#include "kernels/common/rounding.h"
#include "kernels/cpu/equivariant/class_kernels.h"
#include "kernels/cpu/equivariant/tuple_attention.h"
#include "support/parallel.h"
#include "support/working_memory.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;
using kernels::TupleSide;

constexpr double kLog2e = 1.4426950408889634074;

// Groups with at most this number of keys are computed pair by pair in the kernel form. A table
// then costs about as much, and pairs need no subtraction.
constexpr int64_t kPairGroup = 32;

// Scratch memory of one task per worker.
class Scratch {
 public:
  explicit Scratch(size_t bytes)
      : bytes_(round_up(static_cast<int64_t>(bytes), 64)),
        memory_(working_memory(thread_count() * bytes_)) {}
  void* of(int worker) { return memory_.mutable_data_ptr<uint8_t>() + worker * bytes_; }

 private:
  int64_t bytes_;
  Tensor memory_;
};

template <class T>
class CpuRun {
 public:
  CpuRun(const ClassCall& call, ClassMemory& memory)
      : call_(call),
        memory_(memory),
        softmax_(call.form == AttentionForm::softmax),
        query_(packed_heads(softmax_ ? call.query * (call.scale * kLog2e) : call.query)),
        key_(packed_heads(call.key)),
        value_(packed_heads(call.value)),
        heads_(call.query.size(1)) {}

  Tensor forward() {
    sum_keys();
    const Tensor out = output_memory();
    run_output(output_problem(out));
    return out;
  }

  ClassGradients backward(const Tensor& grad_out) {
    grad_out_ = packed_heads(grad_out);
    grad_query_ = in_double(memory_.grad_query, query_.sizes());
    if (!softmax_) key_sums_ = in_double(memory_.key_sums, query_.sizes());
    sum_keys();
    const Tensor out = output_memory();
    grad_ = memory_.grad_sums.take(sums_.sizes(), query_.options());
    run_output(output_problem(out));
    if (softmax_) to_log_sums();
    grad_key_ = in_double(memory_.grad_key, key_.sizes());
    grad_value_ = in_double(memory_.grad_value, value_.sizes());
    add_gradients();
    if (softmax_) grad_query_.mul_(call_.scale * kLog2e);
    return {out, grad_query_, grad_key_, grad_value_};
  }

 private:
  // Computes the sums of queries and, with a gradient, their linear terms in tables too.
  void sum_keys() {
    const int64_t rows = query_.size(0);
    sums_ = in_double(memory_.sums, {rows, heads_, value_.size(2) + 1});
    if (softmax_) {
      shift_ = at::full({rows, heads_}, -std::numeric_limits<double>::infinity(), query_.options());
    }
    for_each_term([&](const AttentionTerm& term, const Tensor& skip) {
      const auto pairs = pair_problem(term);
      run_pairs(pairs, TupleSide::queries, [&](const kernels::GroupTask& task, void* scratch) {
        kernels::run_pairs_forward(pairs, task, scratch);
      });
      run_tables(term, skip, TupleSide::queries);
    });
  }

  void add_gradients() {
    for_each_term([&](const AttentionTerm& term, const Tensor& skip) {
      const auto pairs = pair_problem(term);
      for (const TupleSide side : {TupleSide::queries, TupleSide::keys}) {
        run_pairs(pairs, side, [&](const kernels::GroupTask& task, void* scratch) {
          kernels::run_pairs_backward(pairs, side, task, scratch);
        });
      }
      run_tables(term, skip, TupleSide::keys);
    });
  }

  // Zeros.
  Tensor in_double(ReusedMemory& memory, at::IntArrayRef sizes) const {
    return memory.take(sizes, query_.options().dtype(at::kDouble)).zero_();
  }

  Tensor output_memory() const {
    return memory_.out.take({query_.size(0), heads_, value_.size(2)}, query_.options());
  }

  kernels::ClassOutput<T> output_problem(const Tensor& to) const {
    kernels::ClassOutput<T> problem;
    problem.rows = sums_.size(0);
    problem.heads = heads_;
    problem.values = value_.size(2);
    problem.sums = sums_.template const_data_ptr<double>();
    if (call_.form == AttentionForm::kernel) {
      problem.counts = call_.part.counts.template const_data_ptr<int32_t>();
    }
    problem.normalise = call_.normalise;
    problem.factor = static_cast<double>(call_.part.multiplicity);
    problem.out = to.mutable_data_ptr<T>();
    problem.out_stride = to.stride(0);
    if (!grad_out_.defined()) return problem;
    problem.grad_out = grad_out_.template const_data_ptr<T>();
    problem.grad_out_stride = grad_out_.stride(0);
    problem.weights_are_shares = softmax_;
    problem.grad = grad_.template mutable_data_ptr<T>();
    if (softmax_) return problem;
    problem.features = query_.size(2);
    problem.grad_query = grad_query_.template mutable_data_ptr<double>();
    problem.key_sums = key_sums_.template const_data_ptr<double>();
    return problem;
  }

  static void run_output(const kernels::ClassOutput<T>& problem) {
    parallel_tasks(kernels::class_row_tasks(problem.rows),
                   [&](int64_t task, int) { kernels::run_class_output(problem, task); });
  }

  // Replaces the maximum by the base-2 logarithm of the sum of all weights. It is infinite for a
  // query without keys, so that all its weights are 0.
  void to_log_sums() {
    const Tensor all = sums_.select(2, value_.size(2));
    shift_ = (shift_ + all.log2())
                 .masked_fill(all == 0, std::numeric_limits<double>::infinity())
                 .to(query_.scalar_type());
  }

  // Calls visit(term, skip). `skip` marks the queries of a term whose keys are computed pair by
  // pair; its tables leave them out.
  template <class Visit>
  void for_each_term(Visit&& visit) {
    for (const AttentionTerm& term : call_.part.terms) {
      visit(term, softmax_ ? Tensor() : small_groups(relation_of(term)));
    }
  }

  kernels::TupleRelation relation_of(const AttentionTerm& term) const {
    return tuple_relation(call_.plan.relations[term.relation]);
  }

  static bool is_small(const kernels::TupleRelation& groups, int64_t g) {
    return groups.key_offsets[g + 1] - groups.key_offsets[g] <= kPairGroup;
  }
  static bool all_small(const kernels::TupleRelation& groups) {
    int64_t g = 0;
    while (g < groups.groups && is_small(groups, g)) ++g;
    return g == groups.groups;
  }

  Tensor small_groups(const kernels::TupleRelation& groups) const {
    Tensor small = at::zeros({query_.size(0)}, at::kByte);
    auto* const flags = small.mutable_data_ptr<uint8_t>();
    for (int64_t g = 0; g < groups.groups; ++g) {
      if (!is_small(groups, g)) continue;
      for (int32_t q = groups.query_offsets[g]; q < groups.query_offsets[g + 1]; ++q) {
        flags[groups.queries[q]] = 1;
      }
    }
    return small;
  }

  template <class Problem>
  void set_rows(Problem& problem) const {
    problem.heads = heads_;
    problem.query = head_rows<T>(query_);
    problem.key = head_rows<T>(key_);
    problem.value = head_rows<T>(value_);
    problem.sums = sums_.template mutable_data_ptr<double>();
    if (!grad_out_.defined()) return;
    problem.grad_query = grad_query_.template mutable_data_ptr<double>();
    if (!grad_key_.defined()) return;  // the first pass
    problem.grad = grad_.template const_data_ptr<T>();
    problem.grad_key = grad_key_.template mutable_data_ptr<double>();
    problem.grad_value = grad_value_.template mutable_data_ptr<double>();
  }

  kernels::PairAttention<T> pair_problem(const AttentionTerm& term) {
    kernels::PairAttention<T> problem;
    problem.relation = relation_of(term);
    set_rows(problem);
    if (softmax_) {
      problem.shift = shift_.mutable_data_ptr<T>();
    } else {
      problem.weight = kernels::PairWeight::product;
      problem.largest_group = kPairGroup;
    }
    if (call_.form == AttentionForm::decoupled) return problem;
    const auto nodes = [&](int64_t source, int64_t block) {
      return call_.plan.sources[source].nodes[block].const_data_ptr<int32_t>();
    };
    for (const int64_t block : call_.part.key_only) {
      problem.key_nodes[problem.key_only++] = nodes(call_.part.keys, block);
    }
    for (const int64_t block : term.query_only) {
      problem.query_nodes[problem.query_only++] = nodes(call_.part.queries, block);
    }
    return problem;
  }

  template <class Run>
  void run_pairs(const kernels::PairAttention<T>& problem, TupleSide side, Run&& run) {
    const auto tasks = kernels::cut_pairs(problem.relation, side, problem.largest_group);
    Scratch scratch(kernels::pair_scratch_bytes(problem));
    parallel_tasks(std::ssize(tasks),
                   [&](int64_t task, int worker) { run(tasks[task], scratch.of(worker)); });
  }

  // Runs the tables that rows of a side read. These are the tables of a term's relation and of its
  // extensions, which are subtracted or added back.
  void run_tables(const AttentionTerm& term, const Tensor& skip, TupleSide side) {
    if (softmax_ || all_small(relation_of(term))) return;
    kernels::TableAttention<T> problem;
    set_rows(problem);
    problem.skip = skip.const_data_ptr<uint8_t>();
    if (side == TupleSide::queries && grad_out_.defined()) {
      problem.grad_out = head_rows<T>(grad_out_);
      problem.key_sums = key_sums_.template mutable_data_ptr<double>();
    }
    for_each_meeting(call_, term, side, problem,
                     [&](const kernels::TableAttention<T>& tables) { run_tables(tables, side); });
  }

  static void run_tables(const kernels::TableAttention<T>& problem, TupleSide side) {
    const kernels::TablePlan plan = kernels::plan_tables(problem, side);
    const Tensor workspace = at::empty({plan.workspace_doubles}, at::kDouble);
    Scratch scratch(plan.scratch_doubles * sizeof(double));
    for (int phase = 0; phase < kernels::TablePlan::kPhases; ++phase) {
      parallel_tasks(plan.tasks_of(phase), [&](int64_t task, int worker) {
        kernels::run_tables(problem, plan, phase, task, workspace.mutable_data_ptr<double>(),
                            static_cast<double*>(scratch.of(worker)));
      });
    }
  }

  const ClassCall& call_;
  ClassMemory& memory_;
  bool softmax_;
  Tensor query_, key_, value_;
  int64_t heads_;
  Tensor sums_, shift_;
  Tensor grad_out_, grad_, key_sums_;  // for backward, of queries
  Tensor grad_query_, grad_key_, grad_value_;
};

template <class Run>
auto by_type(const Tensor& rows, Run&& run) {
  return rows.scalar_type() == at::kDouble ? run(double()) : run(float());
}

}  // namespace

Tensor CpuClass::forward(const ClassCall& call) {
  return by_type(call.query,
                 [&](auto type) { return CpuRun<decltype(type)>(call, memory_).forward(); });
}

ClassGradients CpuClass::backward(const ClassCall& call, const Tensor& grad_out) {
  return by_type(call.query, [&](auto type) {
    return CpuRun<decltype(type)>(call, memory_).backward(grad_out);
  });
}

namespace {

at::Tensor cpu_attention(const AttentionCall& call) {
  check_attention(call);
  check_fingerprint(call.plan, call.parts);
  return attend_in_wide_type<CpuClass>(call);
}

AttentionGradients cpu_attention_backward(const AttentionBackwardCall& call) {
  check_attention_backward(call);
  check_fingerprint(call.forward.plan, call.forward.parts);
  return differentiate_in_wide_type<CpuClass>(call);
}

TORCH_LIBRARY_IMPL(nsimplex, CPU, m) {
  m.impl("equivariant_attention", TORCH_FN(flat_attention<&cpu_attention>));
  m.impl("equivariant_attention_backward",
         TORCH_FN(flat_attention_backward<&cpu_attention_backward>));
}

}  // namespace
}  // namespace nsimplex::equivariant
