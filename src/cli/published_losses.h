#pragma once

#include <array>
#include <string_view>

// Figures of "Fast and simplex: 2-simplicial attention in Triton" (Roy et al. 2025, arXiv
// 2507.02754, Tables 2 and 3): ordinary and 2-simplicial transformers of 1, 2 and 3.5 billion
// active weights.
namespace nsimplex::cli {

inline constexpr std::array<double, 3> kPublishedSizes = {1e9, 2e9, 3.5e9};

struct PublishedLosses {
  std::string_view task, arm;
  std::array<double, 3> losses;  ///< negative log-likelihoods, one a size
  double alpha, beta;            ///< as printed, of -log L = alpha log N + beta
};

extern const std::array<PublishedLosses, 8> kPublishedLosses;

}  // namespace nsimplex::cli
