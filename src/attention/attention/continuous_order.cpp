// Turns a real order between two whole ones into keys, values and scales of attention.

#include <ATen/TensorOperators.h>
#include <nsimplex/attention.h>

#include <cmath>

namespace nsimplex {

ContinuousOrder continuous_order(at::TensorList keys, at::TensorList values, double order) {
  const auto count = static_cast<double>(keys.size());
  TORCH_CHECK_VALUE(keys.size() >= 2, "[continuous_order] keys: expected at least 2, got ",
                    keys.size());
  TORCH_CHECK_VALUE(values.size() == keys.size(), "[continuous_order] values: expected ",
                    keys.size(), ", one for each of the keys, got ", values.size());
  TORCH_CHECK_VALUE(order >= count - 1 && order <= count, "[continuous_order] order: expected ",
                    count - 1, " to ", count, ", one less than the keys or as many, got ", order);
  const double a = order - (count - 1);
  const auto dim = static_cast<double>(keys.back().size(-1));
  const auto value_dim = static_cast<double>(values.back().size(-1));
  ContinuousOrder result{keys.vec(), values.vec(), {}};
  result.keys.back() = (1 - a) + a * keys.back();
  result.values.back() = (1 - a) + a * values.back();
  // The product of N rows of unit root mean square has a norm of at most D^(N/2). A product of it
  // with the blended key is at most (1 - a) + a sqrt(D) times that.
  const auto blended = [a](double width) { return (1 - a) + a * std::sqrt(width); };
  result.scale = {std::pow(dim, -0.5 * count) / blended(dim),
                  std::pow(value_dim, -0.5 * (count - 2)) / blended(value_dim)};
  return result;
}

}  // namespace nsimplex
