// Random features by ATen calls, and by a kernel on the CPU.

#include "equivariant/attention/rectified_features.h"

#include <ATen/ATen.h>

#include <cmath>

#include "equivariant/attention/class_attention.h"
#include "kernels/cpu/equivariant/class_kernels.h"
#include "support/parallel.h"
#include "support/rows_product.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;

// x [rows, H, d] times a matrix, as one product instead of one per head.
Tensor times(const Tensor& x, const Tensor& matrix) {
  return at::mm(x.flatten(0, 1), matrix).view({x.size(0), x.size(1), matrix.size(1)});
}

// The maximum over each graph and head of numbers [rows, H, 1], repeated for every row.
Tensor largest(const Tensor& of_row, const Tensor& graphs) {
  if (of_row.numel() == 0) return of_row;
  const Tensor places = graphs.view({-1, 1, 1}).expand_as(of_row);
  const int64_t count = graphs.max().item<int64_t>() + 1;
  return at::full({count, of_row.size(1), 1}, -INFINITY, of_row.options())
      .scatter_reduce(0, places, of_row, "amax")
      .index_select(0, graphs);
}

// The rows, padded to a whole number of vectors.
Tensor padded_rows(const Tensor& matrix) {
  const int64_t columns = matrix.size(1);
  return at::constant_pad_nd(matrix, {0, kernels::padded_channels(columns) - columns}).contiguous();
}

double half_square(const Tensor& x) { return 0.5 * feature_scale(x) * feature_scale(x); }

double floor_of(FeatureMap map, const Tensor& x) {
  return map == FeatureMap::relu ? kReluFloor : exponential_floor(x.scalar_type());
}

kernels::HeadFeatureMap kernel_map(FeatureMap map) {
  return map == FeatureMap::relu ? kernels::HeadFeatureMap::relu
                                 : kernels::HeadFeatureMap::exponential;
}

// Exponentials with a shift.
template <class T>
void write_features(FeatureMap map, const Tensor& x, const Tensor& directions,
                    const FeatureShift& shift, const Tensor& to) {
  const Tensor rows = packed_heads(x), matrix = padded_rows(feature_scale(x) * directions);
  kernels::HeadFeatures<T> problem;
  problem.map = kernel_map(map);
  problem.rows = x.size(0);
  problem.heads = x.size(1);
  problem.features = directions.size(1);
  problem.x = head_rows<T>(rows);
  problem.directions = matrix.const_data_ptr<T>();
  problem.floor = static_cast<T>(floor_of(map, x));
  problem.to = to.mutable_data_ptr<T>();
  problem.half_square = static_cast<T>(half_square(x));
  Tensor most;
  if (map == FeatureMap::exponential) {
    most = at::empty({x.size(0), x.size(1), 1}, x.options());
    problem.shift = most.mutable_data_ptr<T>();
  }
  const int64_t tasks = kernels::class_row_tasks(problem.rows);
  parallel_tasks(tasks, [&](int64_t task, int) { kernels::run_features(problem, task); });
  if (map == FeatureMap::relu) return;
  if (shift.graphs) most = largest(most, *shift.graphs);
  problem.shift = most.mutable_data_ptr<T>();
  parallel_tasks(tasks, [&](int64_t task, int) { kernels::run_exponentials(problem, task); });
}

template <class T>
void write_gradient(FeatureMap map, const Tensor& x, const Tensor& directions,
                    const Tensor& features, const Tensor& grad, const Tensor& to) {
  const Tensor rows = packed_heads(x), matrix = padded_rows((feature_scale(x) * directions).t());
  kernels::HeadFeaturesBackward<T> problem;
  problem.map = kernel_map(map);
  problem.rows = features.size(0);
  problem.heads = features.size(1);
  problem.features = features.size(2);
  problem.width = directions.size(0);
  problem.of_x = features.const_data_ptr<T>();
  problem.directions = matrix.const_data_ptr<T>();
  problem.floor = static_cast<T>(floor_of(map, x));
  problem.grad = grad.const_data_ptr<double>();
  problem.to = to.mutable_data_ptr<T>();
  problem.to_stride = to.stride(0);
  problem.x = head_rows<T>(rows);
  problem.half_square = static_cast<T>(half_square(x));
  parallel_tasks(kernels::class_row_tasks(problem.rows),
                 [&](int64_t task, int) { kernels::run_features_backward(problem, task); });
}

// The features of x from its products with the directions.
Tensor features_of(FeatureMap map, const Tensor& x, const Tensor& product,
                   const FeatureShift& shift) {
  if (map == FeatureMap::relu) return at::clamp_min(product, 0).add_(kReluFloor);
  Tensor exponents = product - 0.5 * (feature_scale(x) * x).square().sum(-1, /*keepdim=*/true);
  if (!shift.none) {
    const Tensor most = exponents.detach().amax(-1, /*keepdim=*/true);
    exponents = exponents - (shift.graphs ? largest(most, *shift.graphs) : most);
  }
  return exponents.exp() + exponential_floor(x.scalar_type());
}

}  // namespace

double feature_scale(const Tensor& x) { return std::pow(static_cast<double>(x.size(-1)), -0.25); }

Tensor apply_features(FeatureMap map, const Tensor& x, const Tensor& directions,
                      const FeatureShift& shift) {
  return features_of(map, x, times(x, feature_scale(x) * directions), shift);
}

Tensor features_backward(FeatureMap map, const Tensor& x, const Tensor& directions,
                         const Tensor& features, const Tensor& grad) {
  const Tensor turned = (feature_scale(x) * directions).t();
  if (map == FeatureMap::relu) {
    return times(at::threshold_backward(grad, features, kReluFloor), turned);
  }
  const Tensor slope = grad * (features - exponential_floor(x.scalar_type()));
  return times(slope, turned) -
         slope.sum(-1, /*keepdim=*/true) * x / std::sqrt(static_cast<double>(x.size(-1)));
}

Tensor CpuClass::features(ClassRows which, FeatureMap map, const Tensor& x,
                          const Tensor& directions, const FeatureShift& shift) {
  // The kernel's exponential requires exponents of at most 0, which a shift ensures.
  if (map == FeatureMap::exponential && shift.none) {
    const Tensor product = blocks_product(x.flatten(0, 1), feature_scale(x) * directions);
    return features_of(map, x, product.view({x.size(0), x.size(1), directions.size(1)}), shift);
  }
  ReusedMemory& memory = which == ClassRows::queries ? query_features_ : key_features_;
  const Tensor to = memory.take({x.size(0), x.size(1), directions.size(1)}, x.options());
  x.scalar_type() == at::kDouble ? write_features<double>(map, x, directions, shift, to)
                                 : write_features<float>(map, x, directions, shift, to);
  return to;
}

Tensor CpuClass::features_backward(FeatureMap map, const Tensor& x, const Tensor& directions,
                                   const Tensor& features, const Tensor& grad) {
  const Tensor to = gradient_.take({x.size(0), x.size(1) * x.size(2)}, x.options());
  x.scalar_type() == at::kDouble ? write_gradient<double>(map, x, directions, features, grad, to)
                                 : write_gradient<float>(map, x, directions, features, grad, to);
  return to;
}

}  // namespace nsimplex::equivariant
