#pragma once

#include <nsimplex/causal.h>
#include <nsimplex/causal_embedding.h>
#include <nsimplex/feature_transformer.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace nsimplex::training {

/// What causal_embed() minimises with Euclidean distances in place of hyperbolic ones, by plain
/// gradient descent: the ablation that leaves curvature out (Xu et al., arXiv 2509.16629, table 3).
///
/// adjacency [M, M], float64. Of the options dimension, steps, learning_rate (0.1 where unset),
/// hops, weight, decay, balanced, generality, relative, restart and seed count; N+ is of both sides, all
/// other nodes are negatives. Coordinates [M, dimension]. Time and memory of a step: O(M^2
/// dimension) and O(M^2 dimension).
at::Tensor euclidean_embedding(const at::Tensor& adjacency, const CausalEmbeddingOptions& options);

/// Encodings of features by the names under which they are compared, made from observations.

/// How causal encodings are made; the three steps have the options of their own functions.
struct EncodingOptions {
  CausalFitOptions structure;
  CausalEmbeddingOptions embedding;  ///< its dimension is the model's
  int64_t embedding_batch = 0;       ///< nodes of a step: steps become epochs of M / so many; 0: M
  double angle = 0.78539816339744831;  ///< c of a rotary table, pi / 4
  bool by_dimension = false;           ///< c sqrt(d)
  double correlation = 0.2;            ///< of graphs of correlations: |corr| below it is no edge
};

/// What a FeatureTransformer takes of an encoding.
struct MadeEncoding {
  FeatureEncoding encoding = FeatureEncoding::none;
  at::Tensor table;  ///< undefined where the encoding has none
  bool learned_scale = false;
  int64_t edges = -1;  ///< of the graph it came from; -1: of none
};

/// Names in the order in which they are shown:
///
///     none               no encoding (CAPE-null)
///     sinusoidal         static absolute: the column's number
///     cooccurrence       static absolute: cooccurrence_vectors(), in the place of gene2vec
///     learned            trainable absolute
///     relative           trainable relative (F.110)
///     cape               causal graph, hyperbolic embedding, rotary
///     cape-scaled        the same with a learned scale a head
///     cape-shuffled      the points of cape, each at another feature: a control
///     cape-random        the radii of cape's points in directions drawn evenly: another control
///     cape-correlation   the graph is |correlation| above a threshold (CAPE-w/o-CSL)
///     cape-euclidean     the embedding is Euclidean (CAPE-w/o-hyperbolic)
///     cape-additive      coordinates are added to the tokens (CAPE-w/o-rotary)
const std::vector<std::string>& encoding_names();

/// How a model takes an encoding of that name. Throws InputError for a name that is not there.
FeatureEncoding encoding_kind(const std::string& name);

/// [M, dim] vectors of features that are alike where the features are high in the same rows, added
/// to the tokens and not trained: what gene2vec learns of genes that are expressed together, in
/// closed form. A feature is high in a row where it is above its median. With c_ij the rows in which
/// both are high, and c_i those in which i is, the vectors are those of the largest eigenvalues s,
/// each times sqrt(s), of
///
///     max(log(n c_ij / (c_i c_j)), 0),  0 for i = j
///
/// scaled to a mean squared length of 1; where M < dim the rest is 0. Complexity: O(n M^2 + M^3).
///
/// Sources: Du and others, "Gene2vec: distributed representation of genes based on co-expression",
/// BMC Genomics 2019; Levy and Goldberg, "Neural word embedding as implicit matrix factorization",
/// NeurIPS 2014.
at::Tensor cooccurrence_vectors(const at::Tensor& observations, int64_t dim);

/// Makes encodings of one table of observations [n, M], float64; a graph is learned once and kept.
class EncodingMaker {
 public:
  EncodingMaker(at::Tensor observations, EncodingOptions options);

  /// For a model of these options; its own encoding and features do not matter. What the controls
  /// draw comes from `seed`. Throws InputError for a name that is not there.
  MadeEncoding make(const std::string& name, const FeatureTransformerOptions& model,
                    uint64_t seed = 0);

  /// The learned graph; learns it where it was not asked for before.
  const CausalFit& structure();

 private:
  at::Tensor correlations() const;
  const at::Tensor& causal_ball(const CausalEmbeddingOptions& embedding);

  at::Tensor observations_;
  EncodingOptions options_;
  std::optional<CausalFit> structure_;
  std::map<int64_t, at::Tensor>
      balls_;  // of the causal graph by dimension: several encodings have it
};

/// The options with an encoding put in, and a model of them.
FeatureTransformer make_model(FeatureTransformerOptions options, const MadeEncoding& encoding,
                              uint64_t seed);

}  // namespace nsimplex::training
