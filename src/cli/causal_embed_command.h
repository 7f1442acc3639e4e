// Declares the options of an embedding, and the files that hold one.

#pragma once

#include <nsimplex/causal_embedding.h>

#include <string>
#include <vector>

#include "cli/cli11.h"
#include "io/safetensors.h"

namespace nsimplex::cli {

/// The options of an embedding as typed, for every command that makes one.
struct EmbeddingFlags {
  CausalEmbeddingOptions options = {};  ///< numbers with one default; the seed is set elsewhere
  std::string optimiser = "tangent", side = "auto", weight = "paths", dangling = "uniform";
  int64_t hops = 0;          ///< 0: the embedding's default
  int64_t negatives = -1;    ///< below 0: the embedding's default
  double learning_rate = 0;  ///< 0: the embedding's default
  bool absolute = false, given_weights = false;
};

/// Adds them to a group of the help. `training`: for a command that also trains a model, so --steps
/// and --lr are the model's and the embedding's are --embed-steps and --embed-lr.
void add_embedding_flags(CLI::App& command, EmbeddingFlags& flags, const std::string& group,
                         bool training);

/// The options that were given.
CausalEmbeddingOptions embedding_options(const EmbeddingFlags& flags);

/// Warns on standard error, once per `what`, if an embedding is uninformative.
void warn_of_blank(const std::string& what, const std::string& warning);

/// The key of the names of nodes or features in the metadata of a safetensors file: a JSON list.
inline constexpr char kNamesOfNodes[] = "names";
std::string names_text(const std::vector<std::string>& names);

/// The names of `count` nodes that names_text() wrote into a file; empty if it has no such list.
std::vector<std::string> names_in(const io::Safetensors& file, int64_t count);

/// Writes into a folder embedding.safetensors (tangents, hyperboloid, ball, generality; names),
/// ball.csv (name, generality, radius, coordinates) and edges.tsv (cause, effect, weight by name),
/// from which a report draws its picture. Each file is written completely or not at all.
void write_ball(const std::string& folder, const CausalEmbedding& made,
                const std::vector<std::string>& names, const at::Tensor& adjacency);

}  // namespace nsimplex::cli
