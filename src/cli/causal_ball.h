#pragma once

#include <nsimplex/causal_embedding.h>

#include <string>
#include <vector>

#include "io/safetensors.h"

namespace nsimplex::cli {

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
