// Declares the feature encodings that studies compare, by name.

#pragma once

#include <nsimplex/causal.h>
#include <nsimplex/causal_embedding.h>
#include <nsimplex/feature_transformer.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "train/ranks.h"

namespace nsimplex::training {

/// The objective of causal_embed() with Euclidean instead of hyperbolic distances, minimised by
/// plain gradient descent. It is the ablation without curvature (Xu et al., arXiv 2509.16629, table
/// 3).
///
/// adjacency [M, M], float64. It uses the options dimension, steps, learning_rate (default 0.1),
/// hops, weight, decay, balanced, generality, relative, restart and seed. N+ contains both sides,
/// and all other nodes are negatives. Returns coordinates [M, dimension]. A step takes O(M^2
/// dimension) time and memory.
at::Tensor euclidean_embedding(const at::Tensor& adjacency, const CausalEmbeddingOptions& options);

/// Encodings of features, by the names under which they are compared, made from observations.

/// The options of causal encodings. Each of the three steps has those of its own function.
struct EncodingOptions {
  CausalFitOptions structure{.estimator = StructureEstimator::order};
  CausalEmbeddingOptions embedding;  ///< its dimension is replaced by the model's
  /// nodes per step: steps become epochs of M / embedding_batch steps; 0: M
  int64_t embedding_batch = 0;
  double angle = 0.78539816339744831;  ///< c of a rotary table, pi / 4
  bool by_dimension = false;           ///< whether c is multiplied by sqrt(d)
  /// for graphs of correlations: smallest |correlation| of an edge
  double correlation = 0.2;
};

/// The arguments that a FeatureTransformer takes from an encoding.
struct MadeEncoding {
  FeatureEncoding encoding = FeatureEncoding::none;
  at::Tensor table;  ///< undefined if the encoding has none
  bool learned_scale = false;
  int64_t edges = -1;  ///< number of edges of its graph; -1: no graph
};

/// Names in the order in which they are shown:
///
///     none               no encoding (CAPE-null)
///     sinusoidal         static absolute: the column's number
///     cooccurrence       static absolute: cooccurrence_vectors(), instead of gene2vec
///     learned            trainable absolute
///     relative           trainable relative (F.110)
///     cape               causal graph, hyperbolic embedding, rotary
///     cape-scaled        the same with one learned scale per head
///     cape-shuffled      control: the points of cape, assigned to other features
///     cape-random        control: the radii of cape's points in uniformly random directions
///     cape-correlation   the graph is |correlation| above a threshold (CAPE-w/o-CSL)
///     cape-euclidean     the embedding is Euclidean (CAPE-w/o-hyperbolic)
///     cape-additive      coordinates are added to the tokens (CAPE-w/o-rotary)
const std::vector<std::string>& encoding_names();

/// How a model uses the encoding of that name. Throws InputError for an unknown name.
FeatureEncoding encoding_kind(const std::string& name);

/// Vectors [M, dim] that are similar for features with large values in the same rows. They are
/// added to the tokens and not trained. They correspond, in closed form, to what gene2vec learns
/// from co-expressed genes. A feature is large in a row if it is above its median. Let c_ij be the
/// number of rows in which both are large, and c_i the number in which i is. The vectors are the
/// eigenvectors of the largest eigenvalues s, times sqrt(s), of
///
///     max(log(n c_ij / (c_i c_j)), 0),  0 for i = j
///
/// scaled to a mean squared length of 1. If M < dim, the rest is 0. Complexity: O(n M^2 + M^3).
///
/// Sources: Du and others, "Gene2vec: distributed representation of genes based on co-expression",
/// BMC Genomics 2019; Levy and Goldberg, "Neural word embedding as implicit matrix factorization",
/// NeurIPS 2014.
at::Tensor cooccurrence_vectors(const at::Tensor& observations, int64_t dim);

/// Makes encodings of one table of observations [n, M], float64. A graph is learned once and kept.
class EncodingMaker {
 public:
  EncodingMaker(at::Tensor observations, EncodingOptions options);

  /// Makes an encoding for a model of these options, whose own encoding and features are ignored.
  /// `seed` determines the random controls. `checkpoint` is called now and then and may throw.
  /// Throws InputError for an unknown name.
  MadeEncoding make(const std::string& name, const FeatureTransformerOptions& model,
                    uint64_t seed = 0, const std::function<void()>& checkpoint = {});

  /// The same on several ranks, which all call it: rank 0 makes the encoding, and the others get it.
  /// Ranks::lead() explains `together`.
  MadeEncoding make(const std::string& name, const FeatureTransformerOptions& model, uint64_t seed,
                    const std::function<void()>& together, Ranks& ranks);

  /// The learned graph. The first call learns it.
  const CausalFit& structure() { return learned({}); }

 private:
  at::Tensor correlations() const;
  const CausalFit& learned(const std::function<void()>& checkpoint);
  const at::Tensor& causal_ball(const CausalEmbeddingOptions& embedding,
                                const std::function<void()>& checkpoint);

  at::Tensor observations_;
  EncodingOptions options_;
  std::optional<CausalFit> structure_;
  std::map<int64_t, at::Tensor>
      balls_;  // of the causal graph by dimension; several encodings share them
};

/// A model of the options with an encoding.
FeatureTransformer make_model(FeatureTransformerOptions options, const MadeEncoding& encoding,
                              uint64_t seed);

}  // namespace nsimplex::training
