#pragma once

#include <nsimplex/layers.h>

namespace nsimplex::detail {

/// Throws c10::Error unless positions are int64 [B, T] and an adjacency is bool [B, T, T], for x
/// [B, T, C].
void check_selected(const SelectedTokens& tokens, const at::Tensor& x);

/// The mask for selected tokens of a sequence that attend among themselves: windows around their
/// positions [B, T], and their adjacency, on every axis. bool, broadcastable to [B, 1, T, T_1, ..,
/// T_N]; absent if everything is admissible.
std::optional<at::Tensor> induced_mask(const SelectedTokens& tokens,
                                       const std::vector<Window>& window, int64_t order);

}  // namespace nsimplex::detail
