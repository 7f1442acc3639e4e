#include "models/selected_tokens.h"

#include <ATen/ATen.h>

namespace nsimplex::detail {

void check_selected(const SelectedTokens& tokens, const at::Tensor& x) {
  const int64_t batch = x.size(0), length = x.size(1);
  const at::Tensor& positions = tokens.positions;
  TORCH_CHECK_VALUE(
      positions.scalar_type() == at::kLong && positions.sizes().equals({batch, length}),
      "[SimplicialAttention] positions: expected int64 of shape [", batch, ", ", length, "], got ",
      positions.scalar_type(), " of shape ", positions.sizes());
  if (!tokens.adjacency) return;
  const at::Tensor& adjacency = *tokens.adjacency;
  TORCH_CHECK_VALUE(
      adjacency.scalar_type() == at::kBool && adjacency.sizes().equals({batch, length, length}),
      "[SimplicialAttention] adjacency: expected bool of shape [", batch, ", ", length, ", ",
      length, "], got ", adjacency.scalar_type(), " of shape ", adjacency.sizes());
}

std::optional<at::Tensor> induced_mask(const SelectedTokens& tokens,
                                       const std::vector<Window>& window, int64_t order) {
  std::optional<at::Tensor> mask;
  const at::Tensor distance =
      tokens.positions.unsqueeze(1) - tokens.positions.unsqueeze(2);  // j - i
  for (int64_t m = 0; m < order; ++m) {
    const Window sees = window.empty() ? Window{} : window[window.size() == 1 ? 0 : m];
    std::optional<at::Tensor> pairs = tokens.adjacency;
    const auto keep = [&](const at::Tensor& inside) { pairs = pairs ? *pairs & inside : inside; };
    if (sees.left >= 0) keep(distance > -sees.left);
    if (sees.right >= 0) keep(distance <= sees.right);
    if (!pairs) continue;
    // [B, T, T_m] -> [B, 1, T, 1, .., T_m, .., 1]
    std::vector<int64_t> shape(3 + order, 1);
    shape[0] = pairs->size(0);
    shape[2] = pairs->size(1);
    shape[3 + m] = pairs->size(2);
    const at::Tensor own = pairs->reshape(shape);
    mask = mask ? *mask & own : own;
  }
  return mask;
}

}  // namespace nsimplex::detail
