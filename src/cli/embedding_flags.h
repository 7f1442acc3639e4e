#pragma once

#include <nsimplex/causal_embedding.h>

#include <string>

#include "cli/cli11.h"

namespace nsimplex::cli {

/// The options of an embedding as they are typed, for every command that makes one.
struct EmbeddingFlags {
  CausalEmbeddingOptions options = {};  ///< numbers with one default; its seed is not among them
  std::string optimiser = "tangent", side = "auto", weight = "paths", dangling = "uniform";
  int64_t hops = 0;          ///< 0: the embedding's own
  int64_t negatives = -1;    ///< below 0: the same
  double learning_rate = 0;  ///< 0: the same
  bool absolute = false, given_weights = false;
};

/// Adds them to a group of the help. `training`: a command that also trains a model, whose --steps
/// and --lr are not the embedding's; they are --embed-steps and --embed-lr there.
void add_embedding_flags(CLI::App& command, EmbeddingFlags& flags, const std::string& group,
                         bool training);

/// The options that were asked for.
CausalEmbeddingOptions embedding_options(const EmbeddingFlags& flags);

/// Warns on standard error, once for each `what`, where an embedding carries nothing.
void warn_of_blank(const std::string& what, const std::string& warning);

}  // namespace nsimplex::cli
