// elu(scale x) + 1 as an operator, so that its small values keep their digits and its bits do not
// depend on how torch cuts an elementwise loop among threads.

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "attention/autograd.h"
#include "attention/dense/dense_arguments.h"
#include "attention/dispatch.h"
#include "kernels/cpu/separable/elu.h"
#include "support/parallel.h"

namespace nsimplex::separable {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct EluCall {
  const Tensor& x;
  double scale;

  template <class Predicate>
  bool any_input(Predicate&& predicate) const {
    return predicate(x);
  }
};

template <auto function>
Tensor flat_elu(const Tensor& x, double scale) {
  return function(EluCall{x, scale});
}

void check_elu(const EluCall& call) {
  TORCH_CHECK_TYPE(at::isFloatingType(call.x.scalar_type()),
                   "[elu_features] x: expected floating numbers, got ", call.x.scalar_type());
}

// exp below 0 is exact, where expm1 + 1 is rounded to a multiple of epsilon.
Tensor plain_elu(const EluCall& call) {
  check_elu(call);
  const Tensor z = call.x.to(dense::accumulate_type(call.x.scalar_type())) * call.scale;
  return at::where(z > 0, z + 1, z.clamp_max(0).exp()).to(call.x.scalar_type());
}

Tensor meta_elu(const EluCall& call) {
  check_elu(call);
  return at::empty_like(call.x);
}

template <class T>
void run_elu(const Tensor& from, const Tensor& to, double scale) {
  const T* const numbers = from.const_data_ptr<T>();
  T* const features = to.mutable_data_ptr<T>();
  const int64_t count = to.numel();
  parallel_tasks((count + kernels::kEluTask - 1) / kernels::kEluTask, [&](int64_t task, int) {
    const int64_t begin = task * kernels::kEluTask;
    kernels::elu_features(numbers + begin, features + begin,
                          std::min(kernels::kEluTask, count - begin), static_cast<T>(scale));
  });
}

// In the memory order of x.
Tensor cpu_elu(const EluCall& call) {
  check_elu(call);
  const at::ScalarType type = dense::accumulate_type(call.x.scalar_type());
  const Tensor to = at::empty_like(call.x, call.x.options().dtype(type));
  const bool as_it_lies = call.x.scalar_type() == type && call.x.is_non_overlapping_and_dense() &&
                          call.x.strides().equals(to.strides());
  const Tensor from = as_it_lies ? call.x : to.copy_(call.x);
  type == at::kDouble ? run_elu<double>(from, to, call.scale)
                      : run_elu<float>(from, to, call.scale);
  return to.to(call.x.scalar_type());
}

Tensor dispatch_elu(const EluCall& call) {
  static const auto op = find_operator<decltype(flat_elu<&plain_elu>)>("nsimplex::elu_features");
  return op.call(call.x, call.scale);
}

// The slope is exp(z) = y up to y = 1 and 1 beyond. It is made of the saved result, whose own
// history has the second derivative.
struct EluFunction : torch::autograd::Function<EluFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const EluCall* call) {
    const at::AutoDispatchBelowADInplaceOrView below;
    Tensor y = dispatch_elu({x, call->scale});
    context->save_for_backward({y});
    context->saved_data["scale"] = call->scale;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const Tensor y = context->get_saved_variables()[0];
    return {grads[0] * y.clamp_max(1) * context->saved_data["scale"].toDouble(), Tensor()};
  }
};

Tensor above_elu(const EluCall& call) {
  return autograd_forward(call, &plain_elu, &dispatch_elu,
                          [](const EluCall& own) { return EluFunction::apply(own.x, &own); });
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("elu_features(Tensor x, float scale=1.0) -> Tensor", {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("elu_features", TORCH_FN(flat_elu<&plain_elu>));
}
TORCH_LIBRARY_IMPL(nsimplex, Meta, m) { m.impl("elu_features", TORCH_FN(flat_elu<&meta_elu>)); }
TORCH_LIBRARY_IMPL(nsimplex, CPU, m) { m.impl("elu_features", TORCH_FN(flat_elu<&cpu_elu>)); }
TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("elu_features", TORCH_FN(flat_elu<&above_elu>));
}
TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("elu_features", TORCH_FN(flat_elu<&plain_elu>));
}

}  // namespace
}  // namespace nsimplex::separable
