#pragma once

#include <ATen/core/Tensor.h>

#include "equivariant/attention/attention_call.h"
#include "equivariant/attention/features.h"
#include "equivariant/attention/reused_memory.h"

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
  at::Tensor query, key, value;  ///< as the inputs, or in double
};

/// The sides of a class; features of both are needed at a time.
enum class ClassSide { queries, keys };

/// How classes are computed. Results whose last argument is `to` may be written there, where it is
/// defined, and are `to` then; others hold until the function is called again.
///
/// ATen calls over the list of all pairs, differentiable; the definition.
class ReferenceClass {
 public:
  static constexpr bool kWritesTo = false;

  /// rows [m, c] times matrix [c, parts w], and `bias`: [parts, m, w], each part by itself.
  at::Tensor products(const std::optional<at::Tensor>& bias, const at::Tensor& rows,
                      const at::Tensor& matrix, int64_t parts);
  at::Tensor features(ClassSide side, FeatureMap map, const at::Tensor& x,
                      const at::Tensor& directions, const std::optional<at::Tensor>& graphs);
  at::Tensor features_backward(FeatureMap map, const at::Tensor& x, const at::Tensor& directions,
                               const at::Tensor& features, const at::Tensor& grad,
                               const at::Tensor& to);
  at::Tensor forward(const ClassCall& call, const at::Tensor& to);  ///< [rows of queries, H, e]
  ClassGradients backward(const ClassCall& call, const at::Tensor& grad_out, const at::Tensor& to);
};

/// Kernels of the CPU, float or double. What is as large as queries are is allocated once for all
/// classes: memory that is given back and taken again is cleared page by page.
class CpuClass {
 public:
  static constexpr bool kWritesTo = true;

  at::Tensor products(const std::optional<at::Tensor>& bias, const at::Tensor& rows,
                      const at::Tensor& matrix, int64_t parts);
  at::Tensor features(ClassSide side, FeatureMap map, const at::Tensor& x,
                      const at::Tensor& directions, const std::optional<at::Tensor>& graphs);
  at::Tensor features_backward(FeatureMap map, const at::Tensor& x, const at::Tensor& directions,
                               const at::Tensor& features, const at::Tensor& grad,
                               const at::Tensor& to);
  at::Tensor forward(const ClassCall& call, const at::Tensor& to);
  ClassGradients backward(const ClassCall& call, const at::Tensor& grad_out, const at::Tensor& to);

 private:
  ReusedMemory query_features_, key_features_;
  ReusedMemory sums_, grad_sums_, grad_query_, grad_key_, grad_value_;
};

}  // namespace nsimplex::equivariant
