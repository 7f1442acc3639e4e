#pragma once

#include <ATen/core/Tensor.h>

#include "equivariant/attention/attention_call.h"

// Attention of one class at the outputs of one pattern, from its queries, keys and values.

namespace nsimplex::equivariant {

/// s(q, k) is exp(scale q . k) for softmax, q . k otherwise.
struct ClassCall {
  const PlanTensors& plan;
  const PartTensors& part;
  AttentionForm form;
  bool normalise;
  double scale;
  at::Tensor query, key;  ///< [rows, H, d], of the kernel forms features
  at::Tensor value;       ///< [rows of keys, H, e]
};

struct ClassGradients {
  at::Tensor out;                ///< the result again
  at::Tensor query, key, value;  ///< as the inputs
};

/// ATen calls over the list of all pairs, differentiable; the definition.
struct ReferenceClass {
  static at::Tensor forward(const ClassCall& call);  ///< [rows of queries, H, e]
  static ClassGradients backward(const ClassCall& call, const at::Tensor& grad_out);
};

/// Kernels of the CPU, float or double.
struct CpuClass {
  static at::Tensor forward(const ClassCall& call);
  static ClassGradients backward(const ClassCall& call, const at::Tensor& grad_out);
};

}  // namespace nsimplex::equivariant
