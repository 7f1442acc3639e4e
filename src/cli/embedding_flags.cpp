#include "cli/embedding_flags.h"

#include "causal/embedding/names.h"
#include "cli/options.h"
#include "support/log.h"

namespace nsimplex::cli {

void add_embedding_flags(CLI::App& command, EmbeddingFlags& flags, const std::string& group,
                         bool training) {
  CausalEmbeddingOptions& o = flags.options;
  const std::string prefix = training ? "--embed-" : "--";
  const auto add = option_adder(command, group);
  add("--optimiser", flags.optimiser,
      "tangent: Adam on tangents at the origin; radam, rsgd: Riemannian")
      ->check(CLI::IsMember(causal::names_of(causal::kOptimiserNames)));
  add(prefix + "steps", o.steps, training ? "Steps of the embedding" : "Steps over all nodes")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  add(prefix + "lr", flags.learning_rate,
      training ? "Learning rate of the embedding; 0: its own"
               : "Learning rate; 0: 1, 0.3 and 0.1 for the three optimisers")
      ->check(CLI::NonNegativeNumber);
  add("--hops", flags.hops,
      "Edges between nodes that attract each other; 0: 1 in a hierarchy, else 2")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
  add("--attract", flags.side,
      "both: causes and effects; causes: effects repel; auto: causes in a hierarchy, else both")
      ->check(CLI::IsMember({"auto", "both", "causes"}));
  add("--weight", flags.weight, "paths: strengths of all paths; direct: |A| alone")
      ->check(CLI::IsMember(causal::names_of(causal::kWeightNames)));
  add("--decay", o.decay, "Factor of a path's strength for every further edge");
  add("--negatives", flags.negatives,
      "Nodes that stand for all others in a step; 0: all; -1: all up to 2,000 nodes, else 512");
  command
      .add_flag("--given-weights", flags.given_weights,
                "Weights as they are, not freed of units and of their common size")
      ->group(group);
  add("--generality", o.generality, "How strongly general nodes are drawn to the origin, lambda_g")
      ->check(CLI::NonNegativeNumber);
  command
      .add_flag("--absolute", flags.absolute,
                "A pull of --generality times pi and the distance, as printed, not by M pi and the "
                "weights of the node's pairs")
      ->group(group);
  add("--restart", o.restart, "Of the PageRank");
  add("--dangling", flags.dangling,
      "Walks at nodes without causes: uniform, go on anywhere; eigenvector: end")
      ->check(CLI::IsMember(causal::names_of(causal::kDanglingNames)));
}

CausalEmbeddingOptions embedding_options(const EmbeddingFlags& flags) {
  using causal::parse_name;
  CausalEmbeddingOptions options = flags.options;
  options.optimiser = parse_name(causal::kOptimiserNames, "--optimiser", flags.optimiser);
  options.weight = parse_name(causal::kWeightNames, "--weight", flags.weight);
  options.dangling = parse_name(causal::kDanglingNames, "--dangling", flags.dangling);
  if (flags.side != "auto") {
    options.side = parse_name(causal::kSideNames, "--attract", flags.side);
  }
  if (flags.hops > 0) options.hops = flags.hops;
  if (flags.negatives >= 0) options.negatives = flags.negatives;
  if (flags.learning_rate > 0) options.learning_rate = flags.learning_rate;
  if (flags.absolute) options.relative = false;
  if (flags.given_weights) options.balanced = false;
  return options;
}

void warn_of_blank(const std::string& what, const std::string& warning) {
  if (!warning.empty()) log_warning_once(what, what + ": " + warning);
}

}  // namespace nsimplex::cli
