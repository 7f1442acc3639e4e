// Turns a dense attention call into the kernel's pointers, strides and memory.

#include "attention/common/attention_kernel.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <sstream>

#include "attention/common/attention_mask.h"
#include "kernels/common/rounding.h"
#include "kernels/common/tile_table.h"
#include "kernels/cpu/shared/simd.h"
#include "support/log.h"
#include "support/parallel.h"

namespace nsimplex::dense {
namespace {

// The kernels have their own enums with the same enumerators, because they do not depend on
// Torch.
template <class To, class From>
constexpr To same(From value) {
  return static_cast<To>(value);
}
static_assert(same<kernels::ValueReduce>(Reduce::product) == kernels::ValueReduce::product &&
              same<kernels::ValueReduce>(Reduce::sum) == kernels::ValueReduce::sum &&
              same<kernels::ValueReduce>(Reduce::mean) == kernels::ValueReduce::mean);
static_assert(same<kernels::Form>(Form::product) == kernels::Form::product &&
              same<kernels::Form>(Form::determinant) == kernels::Form::determinant);
static_assert(same<kernels::Normalizer>(Normalizer::softmax) == kernels::Normalizer::softmax &&
              same<kernels::Normalizer>(Normalizer::softmax_sink) ==
                  kernels::Normalizer::softmax_sink &&
              same<kernels::Normalizer>(Normalizer::sigmoid) == kernels::Normalizer::sigmoid &&
              same<kernels::Normalizer>(Normalizer::relu) == kernels::Normalizer::relu);
static_assert(same<kernels::Distinct>(Distinct::none) == kernels::Distinct::none &&
              same<kernels::Distinct>(Distinct::axes) == kernels::Distinct::axes &&
              same<kernels::Distinct>(Distinct::with_query) == kernels::Distinct::with_query);

const Call& addressable(const Call& call, const char* operation) {
  require_addressable(operation, "query", call.query);
  require_addressable(operation, "keys", call.keys);
  require_addressable(operation, "values", call.values);
  return call;
}

}  // namespace

KernelInputs::KernelInputs(const Call& call, const char* operation)
    : settings_(settings_of(addressable(call, operation))),
      query_(with_contiguous_channels(call.query)),
      valid_(valid_keys(call)) {
  for (int m = 0; m < settings_.order; ++m) {
    keys_[m] = with_contiguous_channels(call.keys[m]);
    values_[m] = with_contiguous_channels(call.values[m]);
  }
  if (call.options.key_masks) take_key_masks(call);
  if (call.options.cu_seqlens) documents_ = document_bounds(call);
  if (call.options.query_positions) positions_ = rising_positions(call);
  take_masks(call);
  const auto of_heads = [&](const OptionalTensor& numbers) {
    if (!numbers) return at::Tensor();
    return accumulated(*numbers, accumulate_type(query_.scalar_type())).contiguous();
  };
  sink_ = of_heads(call.options.sink);
  slopes_ = of_heads(call.options.alibi_slopes);
}

// A batch entry that has an axis without keys has no tuple. All its lengths become 0, so that none
// of its keys is read.
void KernelInputs::take_key_masks(const Call& call) {
  const int64_t batch = query_.size(0);
  if (!valid_.defined()) {
    valid_ = at::empty({settings_.order, batch}, query_.options().dtype(at::kLong));
    for (int m = 0; m < settings_.order; ++m) valid_.select(0, m).fill_(keys_[m].size(2));
  }
  int64_t* const valid = valid_.mutable_data_ptr<int64_t>();
  for (int m = 0; m < settings_.order; ++m) {
    key_mask_[m] = (*call.options.key_masks)[m].contiguous();
  }
  for (int64_t b = 0; b < batch; ++b) {
    bool alive = true;
    for (int m = 0; m < settings_.order; ++m) {
      const bool* const mask = key_mask_[m].const_data_ptr<bool>() + b * keys_[m].size(2);
      alive &= std::find(mask, mask + valid[m * batch + b], true) != mask + valid[m * batch + b];
    }
    for (int m = 0; m < settings_.order && !alive; ++m) valid[m * batch + b] = 0;
  }
}

void KernelInputs::take_masks(const Call& call) {
  for (const TupleMask& mask : masks_of(call)) {
    const bool boolean = mask.boolean();
    masks_.push_back(boolean ? mask.tensor()
                             : accumulated(mask.tensor(), accumulate_type(query_.scalar_type())));
  }
}

template <class T>
void KernelInputs::fill(kernels::DenseProblem<T>& problem) const {
  problem.order = settings_.order;
  problem.reduce = same<kernels::ValueReduce>(settings_.reduce);
  problem.batch = query_.size(0);
  problem.heads = query_.size(1);
  problem.kv_heads = keys_[0].size(1);
  problem.queries = query_.size(2);
  problem.dim = query_.size(3);
  problem.value_dim = values_[0].size(3);
  problem.logit_scale = settings_.scale.logit;
  problem.output_scale = settings_.scale.output;
  problem.softcap = settings_.softcap;
  problem.query = input_rows<T>(query_);
  for (int m = 0; m < settings_.order; ++m) {
    problem.axes[m] = {input_rows<T>(keys_[m]), input_rows<T>(values_[m]), settings_.visible[m]};
    if (valid_.defined()) {
      problem.axes[m].visible.lengths = valid_.const_data_ptr<int64_t>() + m * problem.batch;
    }
  }
  fill_options(problem);
}

template <class T>
void KernelInputs::fill_options(kernels::DenseProblem<T>& problem) const {
  using R = kernels::Accum<T>;
  problem.form = same<kernels::Form>(settings_.form);
  problem.normalizer = same<kernels::Normalizer>(settings_.normalizer);
  problem.distinct = same<kernels::Distinct>(settings_.distinct);
  problem.dropout = {.p = settings_.dropout_p, .seed = static_cast<uint64_t>(settings_.seed)};
  if (sink_.defined()) problem.sink = sink_.const_data_ptr<R>();
  if (slopes_.defined()) problem.slopes = slopes_.const_data_ptr<R>();
  for (int m = 0; m < settings_.order; ++m) {
    kernels::DenseAxis<T>& axis = problem.axes[m];
    if (key_mask_[m].defined()) axis.mask = key_mask_[m].const_data_ptr<bool>();
    if (positions_.defined()) {
      axis.visible.positions = positions_.const_data_ptr<int64_t>();
      axis.visible.position_stride = problem.queries;
    }
    if (!documents_.defined()) continue;
    axis.visible.document_begin = documents_.const_data_ptr<int64_t>();
    axis.visible.document_end = axis.visible.document_begin + problem.queries;
  }
  for (const at::Tensor& mask : masks_) {
    kernels::TupleMask<T>& own = problem.mask[problem.masks++];
    static_cast<kernels::TuplePlaces&>(own) = tuple_places(mask);
    if (mask.scalar_type() == at::kBool) {
      own.admissible = mask.const_data_ptr<bool>();
    } else {
      own.logits = mask.const_data_ptr<R>();
    }
  }
}

kernels::TuplePlaces tuple_places(const at::Tensor& tensor) {
  const auto stride = [&](int64_t d) { return tensor.size(d) == 1 ? 0 : tensor.stride(d); };
  kernels::TuplePlaces places{stride(0), stride(1), stride(2)};
  for (int64_t m = 0; m + 3 < tensor.dim(); ++m) places.axis_stride[m] = stride(3 + m);
  return places;
}

template void KernelInputs::fill(kernels::DenseProblem<double>&) const;
template void KernelInputs::fill(kernels::DenseProblem<float>&) const;
template void KernelInputs::fill(kernels::DenseProblem<kernels::Bf16>&) const;
template void KernelInputs::fill(kernels::DenseProblem<kernels::Fp16>&) const;

at::Tensor with_contiguous_channels(const at::Tensor& tensor) {
  return tensor.stride(-1) == 1 || tensor.size(-1) == 1 ? tensor : tensor.contiguous();
}

KernelMemory aligned_memory(size_t workspace_bytes, size_t scratch_bytes, int64_t most_tasks) {
  // ATen aligns CPU memory to 64 bytes. Parts of multiples of that size keep the next part aligned.
  const auto padded = [](size_t bytes) { return round_up(static_cast<int64_t>(bytes), 64); };
  return {padded(workspace_bytes), padded(scratch_bytes),
          std::clamp<int64_t>(most_tasks, 1, thread_count())};
}

KernelMemory memory_of(const kernels::DensePlan& plan) {
  return aligned_memory(plan.workspace_bytes, plan.scratch_bytes,
                        *std::max_element(plan.tasks, plan.tasks + kernels::DensePlan::kMaxPhases));
}

void log_plan(std::string_view operation, int order, const kernels::DensePlan& plan,
              const KernelMemory& memory) {
  static const bool wanted = environment_flag("NSIMPLEX_PLAN");
  if (!wanted) return;
  std::ostringstream line;
  const auto list = [&line](std::string_view name, const auto* first, int count) {
    line << " " << name << "=";
    for (int i = 0; i < count; ++i) line << (i > 0 ? "," : "") << first[i];
  };
  line << "plan: " << operation;
  list("axes", plan.axis, order);
  line << " inner=" << plan.inner_axis << " rows=" << kernels::kBlockRows
       << " panel=" << kernels::kPanelKeys << " blocks=" << plan.blocks << " splits=" << plan.splits
       << " fused=" << plan.fused;
  list("tasks", plan.tasks, plan.phases);
  line << " workspace=" << memory.workspace_bytes << " scratch=" << memory.workers << "x"
       << memory.scratch_bytes << " simd=" << kernels::simd_level();
  log_line(line.str());
}

}  // namespace nsimplex::dense
