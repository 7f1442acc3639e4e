// Feature maps of separable attention by ATen calls. elu(scale x) + 1 is an operator, so that its
// small values keep their digits, and its bits do not depend on how torch divides an elementwise
// loop among threads.

#include <ATen/ATen.h>
#include <nsimplex/separable_attention.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <cmath>
#include <numbers>

#include "attention/common/attention_arguments.h"
#include "kernels/cpu/separable_attention/separable_attention.h"
#include "support/as_function.h"
#include "support/named_option.h"
#include "support/operator.h"
#include "support/parallel.h"
#include "support/plain_tensor.h"
#include "support/random.h"
#include "support/size_limits.h"

namespace nsimplex::separable {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct EluCall {
  Tensor x;
  double scale = 1.0;

  static auto fields(auto& self) { return std::tie(self.x, self.scale); }

  template <class Predicate>
  bool any_input(Predicate&& predicate) const {
    return predicate(x);
  }
};

void check_elu(const EluCall& call) {
  TORCH_CHECK_TYPE(is_floating(call.x), "[elu_features] x: expected floating numbers, got ",
                   call.x.scalar_type());
}

// exp is exact below 0, while expm1 + 1 is rounded to a multiple of epsilon.
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
  static const Operator<Tensor, EluCall> elu("nsimplex::elu_features");
  return elu(call);
}

// The slope is exp(z) = y up to y = 1, and 1 beyond. It is computed from the saved result, whose
// graph gives the second derivative.
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
  m.impl("elu_features", TORCH_FN(flat<&plain_elu>));
}
TORCH_LIBRARY_IMPL(nsimplex, Meta, m) { m.impl("elu_features", TORCH_FN(flat<&meta_elu>)); }
TORCH_LIBRARY_IMPL(nsimplex, CPU, m) { m.impl("elu_features", TORCH_FN(flat<&cpu_elu>)); }
TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) { m.impl("elu_features", TORCH_FN(flat<&above_elu>)); }
TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("elu_features", TORCH_FN(flat<&plain_elu>));
}

}  // namespace
}  // namespace nsimplex::separable

namespace nsimplex {

template <>
inline constexpr Names<Feature, 3> kNames<Feature>{
    {{"elu", Feature::elu}, {"relu", Feature::relu}, {"random", Feature::random}}};

namespace separable {
namespace {

using at::Tensor;

// Normal numbers that depend on the seed only, on every machine: the transform of Box and Muller of
// two uniform numbers.
Tensor normal_numbers(int64_t rows, int64_t columns, int64_t seed) {
  Tensor numbers = at::empty({rows, columns}, at::kDouble);
  double* const number = numbers.mutable_data_ptr<double>();
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    const auto draw = [&](uint64_t index) {
      return random_unit(random_bits(static_cast<uint64_t>(seed), index));
    };
    const auto index = static_cast<uint64_t>(i);
    const double radius = std::sqrt(-2.0 * std::log1p(-draw(2 * index)));
    number[i] = radius * std::cos(2.0 * std::numbers::pi * draw(2 * index + 1));
  }
  return numbers;
}

// Orthogonalises rows in blocks of as many rows as columns. Each row keeps its length.
Tensor orthogonal_rows(const Tensor& rows) {
  std::vector<Tensor> blocks;
  for (const Tensor& block : rows.split(rows.size(1))) {
    const auto [basis, triangle] = at::linalg_qr(block.t());  // columns
    // Householder's reflections determine the signs of the diagonal. With positive signs the basis
    // is that of Gram and Schmidt, which is uniformly distributed like the rows.
    const Tensor signs = at::where(triangle.diagonal().lt(0), -1.0, 1.0);
    blocks.push_back((basis * signs).t() * block.norm(2, {1}, /*keepdim=*/true));
  }
  return at::cat(blocks);
}

// w [features, channels of x], in the dtype and on the device of x.
Tensor random_directions(const Tensor& x, int64_t features, c10::SymInt seed, bool orthogonal) {
  as_function("feature_map", [&] { require_room("features", {features, x.size(-1)}); });
  const Tensor rows = normal_numbers(features, x.size(-1), seed.guard_int(__FILE__, __LINE__));
  return (orthogonal ? orthogonal_rows(rows) : rows).to(x.options());
}

Tensor meta_directions(const Tensor& x, int64_t features, c10::SymInt /*seed*/,
                       bool /*orthogonal*/) {
  return at::empty_symint({features, x.sym_size(-1)}, x.options());
}

Tensor dispatch_directions(const Tensor& x, int64_t features, c10::SymInt seed, bool orthogonal) {
  static const auto op = find_operator<decltype(random_directions)>("nsimplex::random_directions");
  // Only the width, dtype and device of x matter.
  return op.call(x.detach(), features, std::move(seed), orthogonal);
}

Tensor elu_of(const Tensor& x, double scale) {
  static const auto op = find_operator<Tensor(const Tensor&, double)>("nsimplex::elu_features");
  return op.call(x, scale);
}

Tensor map(const Tensor& x, std::string_view kind, int64_t features, c10::SymInt seed,
           bool orthogonal, std::optional<double> scale) {
  constexpr char kName[] = "[feature_map] ";
  TORCH_CHECK_TYPE(is_floating(x), kName, "x: expected floating numbers, got ", x.scalar_type());
  TORCH_CHECK_VALUE(x.dim() >= 1 && x.sym_size(-1).sym_ge(1).expect_true(__FILE__, __LINE__), kName,
                    "x: expected at least one channel, got shape ", x.sym_sizes());
  const auto chosen =
      named_option<Feature>("feature_map", "kind", kind, {.before = "", .last = " or "});
  const bool random = chosen == Feature::random;
  TORCH_CHECK_VALUE(random || (features == 0 && !orthogonal), kName,
                    "features and orthogonal: of kind random only, got kind '", kind, "'");
  TORCH_CHECK_VALUE(features >= 0, kName,
                    "features: expected at least 1, or 0 for the channels of x, got ", features);
  TORCH_CHECK_VALUE(!scale || std::isfinite(*scale), kName, "scale: expected a finite number, got ",
                    *scale);
  if (chosen == Feature::elu) return elu_of(x, scale.value_or(1));
  if (chosen == Feature::relu) return at::relu(scale ? x * *scale : x);
  // size() would fix the other sizes of a traced tensor.
  const int64_t channels = x.sym_size(-1).guard_int(__FILE__, __LINE__);
  const int64_t count = features > 0 ? features : channels;
  const Tensor wide = x.to(dense::accumulate_type(x.scalar_type())) *
                      scale.value_or(std::pow(static_cast<double>(channels), -0.25));
  const Tensor directions = dispatch_directions(wide, count, std::move(seed), orthogonal);
  const Tensor exponent = wide.matmul(directions.t()) - wide.square().sum(-1, true) / 2;
  return (exponent.exp() / std::sqrt(static_cast<double>(count))).to(x.scalar_type());
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  m.def("random_directions(Tensor x, int features, SymInt seed, bool orthogonal) -> Tensor", tags);
  m.def(
      "feature_map(Tensor x, str kind='elu', *, int features=0, SymInt seed=0, "
      "bool orthogonal=False, float? scale=None) -> Tensor",
      tags);
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("random_directions", TORCH_FN(random_directions));
}
TORCH_LIBRARY_IMPL(nsimplex, Meta, m) { m.impl("random_directions", TORCH_FN(meta_directions)); }
TORCH_LIBRARY_IMPL(nsimplex, CompositeImplicitAutograd, m) { m.impl("feature_map", TORCH_FN(map)); }

// vmap requires a registration of this operator, although it only decomposes it.
TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) { m.impl("feature_map", TORCH_FN(map)); }

}  // namespace
}  // namespace separable

at::Tensor feature_map(const at::Tensor& x, const FeatureOptions& options) {
  // The call goes through the dispatcher for autocast.
  static const auto op = find_operator<decltype(separable::map)>("nsimplex::feature_map");
  return op.call(x, name_of(options.kind), options.features, options.seed, options.orthogonal,
                 options.scale);
}

}  // namespace nsimplex
