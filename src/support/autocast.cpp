// The dtype in which every operator computes under torch.autocast. One kernel above all operators
// casts the arguments, and autocast is off below it. Without a line in operator_table.h, an operator
// would be computed by products that autocast narrows one by one, and would meet tensors of two
// dtypes.

#include "support/autocast.h"

#include <torch/library.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "support/operator_table.h"

namespace nsimplex {
namespace {

using at::Tensor;

constexpr std::string_view kMultiplied[] = {"query", "keys", "values", "reducer_weights"};

// Float64 stays unchanged, and so do tensors that are not floating.
c10::IValue cast(const c10::IValue& value, at::ScalarType type, c10::DeviceType device) {
  if (value.isTensor()) return at::autocast::cached_cast(type, value.toTensor(), device);
  if (!value.isTensorList()) return value;
  const std::vector<Tensor> list = value.toTensorVector();
  return at::autocast::cached_cast(type, at::TensorList(list), device);
}

template <Cast rule, c10::DeviceType device>
void cast_and_call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const NoAutocast below(device);
  const auto& arguments = op.schema().arguments();
  const size_t first = stack->size() - arguments.size();
  for (size_t i = 0; rule != Cast::as_given && i < arguments.size(); ++i) {
    const bool multiplied =
        std::ranges::find(kMultiplied, arguments[i].name()) != std::ranges::end(kMultiplied);
    if (rule == Cast::narrow && !multiplied) continue;
    c10::IValue& value = (*stack)[first + i];
    value =
        cast(value, rule == Cast::narrow ? at::autocast::get_autocast_dtype(device) : at::kFloat,
             device);
  }
  op.callBoxed(stack);
}

template <c10::DeviceType device>
void register_rules(torch::Library& library) {
  const auto kernel = [](Cast cast) {
    switch (cast) {
      case Cast::narrow:
        return torch::CppFunction::makeFromBoxedFunction<&cast_and_call<Cast::narrow, device>>();
      case Cast::wide:
        return torch::CppFunction::makeFromBoxedFunction<&cast_and_call<Cast::wide, device>>();
      case Cast::as_given:
        break;
    }
    return torch::CppFunction::makeFromBoxedFunction<&cast_and_call<Cast::as_given, device>>();
  };
  for (const OperatorRow& each : kOperators) library.impl(each.name, kernel(each.cast));
}

TORCH_LIBRARY_IMPL(nsimplex, AutocastCPU, m) { register_rules<c10::DeviceType::CPU>(m); }
TORCH_LIBRARY_IMPL(nsimplex, AutocastCUDA, m) { register_rules<c10::DeviceType::CUDA>(m); }

}  // namespace
}  // namespace nsimplex
