#pragma once

#include <nsimplex/causal_embedding.h>

#include <string>
#include <vector>

#include "cli/cli11.h"
#include "io/safetensors.h"

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

/// Where a safetensors file has the names of nodes or features: in its metadata, a JSON list.
inline constexpr char kNamesOfNodes[] = "names";
std::string names_text(const std::vector<std::string>& names);

/// The names of `count` nodes that names_text() wrote into a file; none where it has no such list.
std::vector<std::string> names_in(const io::Safetensors& file, int64_t count);

/// Writes into a folder embedding.safetensors (tangents, hyperboloid, ball, generality; names), ball.csv
/// (name, generality, radius, coordinates) and edges.tsv (cause, effect, weight by name), of which
/// a report draws its picture. Each file is whole or not there.
void write_ball(const std::string& folder, const CausalEmbedding& made,
                const std::vector<std::string>& names, const at::Tensor& adjacency);

}  // namespace nsimplex::cli
