#pragma once

#include <nsimplex/causal_embedding.h>

#include <string>
#include <vector>

namespace nsimplex::cli {

/// Writes into a folder embedding.safetensors (tangents, hyperboloid, ball, generality), ball.csv
/// (name, generality, radius, coordinates) and edges.tsv (cause, effect, weight by name), of which
/// a report draws its picture. Each file is whole or not there.
void write_ball(const std::string& folder, const CausalEmbedding& made,
                const std::vector<std::string>& names, const at::Tensor& adjacency);

}  // namespace nsimplex::cli
