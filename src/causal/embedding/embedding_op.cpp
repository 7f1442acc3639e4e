// The functions of nsimplex/causal_embedding.h as operators, for Python: options by name.

#include <ATen/ATen.h>
#include <nsimplex/causal_embedding.h>
#include <torch/library.h>

#include "causal/embedding/names.h"
#include "causal/tensors.h"

namespace nsimplex {
namespace causal {
namespace {

using at::Tensor;

std::tuple<Tensor, Tensor, double, int64_t, std::string, int64_t, double> embed_by_name(
    const Tensor& adjacency, int64_t dimension, std::string_view optimiser, int64_t steps,
    std::optional<double> learning_rate, std::optional<int64_t> hops,
    std::optional<std::string_view> side, std::string_view weight, double decay,
    std::optional<int64_t> negatives, double generality, bool relative, double restart,
    std::string_view dangling, int64_t seed, bool balanced) {
  CausalEmbeddingOptions options;
  options.dimension = dimension;
  options.steps = steps;
  options.learning_rate = learning_rate;
  options.hops = hops;
  options.decay = decay;
  options.negatives = negatives;
  options.generality = generality;
  options.relative = relative;
  options.restart = restart;
  options.seed = seed;
  options.balanced = balanced;
  as_function("causal_embed", [&] {
    options.optimiser = parse_name(kOptimiserNames, "optimiser", optimiser);
    if (side) options.side = parse_name(kSideNames, "side", *side);
    options.weight = parse_name(kWeightNames, "weight", weight);
    options.dangling = parse_name(kDanglingNames, "dangling", dangling);
  });
  CausalEmbedding made = causal_embed(adjacency, options);
  return {made.tangents,
          made.generality,
          made.loss,
          made.hops,
          std::string(name_of(kSideNames, made.side)),
          made.without_negatives,
          made.seconds};
}

std::tuple<double, double, int64_t> ranking(const Tensor& tangents, const Tensor& adjacency) {
  const CausalRanking made = causal_ranking(tangents, adjacency);
  return {made.mean_rank, made.map, made.pairs};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "causal_embed(Tensor adjacency, int dimension, str optimiser, int steps, float? "
      "learning_rate, int? hops, str? side, str weight, float decay, int? negatives, float "
      "generality, bool relative, float restart, str dangling, int seed, bool balanced=True) -> "
      "(Tensor, "
      "Tensor, float, int, str, int, float)",
      TORCH_FN(embed_by_name));
  m.def("causal_embedding_warning(Tensor tangents, Tensor? adjacency=None) -> str",
        TORCH_FN(causal_embedding_warning));
  m.def("causal_ranking(Tensor tangents, Tensor adjacency) -> (float, float, int)",
        TORCH_FN(ranking));
  m.def("hyperbolic_distances(Tensor tangents) -> Tensor", TORCH_FN(hyperbolic_distances));
}

}  // namespace
}  // namespace causal
}  // namespace nsimplex
