// Embeds causal graphs in hyperbolic space, and makes rotary angles of the points.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/causal_options.h>
#include <nsimplex/version.h>

#include <cstdint>
#include <optional>
#include <string>

/// Embeds a causal graph in hyperbolic space and turns the points into angles of a rotary encoding.
namespace nsimplex {

struct CausalEmbedding {
  at::Tensor tangents;    ///< float64 [M, d]: z = r u, distance from the origin and direction
  at::Tensor generality;  ///< float64 [M]: pi, sums to 1; larger for nodes with many effects
  double loss;            ///< Eq. 15 at the end, over all negatives or those of the last step
  int64_t hops;           ///< the value that was used
  AttractionSide side;
  /// nodes that attract every other node: their distances are meaningless
  int64_t without_negatives;
  double seconds;
};

/// Places the nodes of a weighted graph in hyperbolic space, so that connected nodes are close and
/// nodes with many effects lie near the origin. It minimises, over all nodes m,
///
///     1/M sum_m [ - sum_{n in N+(m)} w_mn log( e^-d_mn / (e^-d_mn + sum_{n' in N-(m)} e^-d_mn') )
///                 + lambda_g sqrt(W_m W) M pi_m log cosh d(m, o) ]
///
/// W_m is the sum of the node's w_mn, W the mean of the nonzero ones, and pi the PageRank of a walk
/// from effects to causes. Both are computed from a form of |A| that does not depend on the units
/// of nodes or on a common factor (src/causal/embedding/embed.h), so the points are the same for
/// D^-1 A D and c A. Without `relative` the pull is lambda_g pi_m d(m, o), and without `balanced`
/// the weights are used as given; both are as printed in the paper.
///
/// adjacency [M, M] is dense or sparse COO, floating, on the CPU. A_ij belongs to i -> j. Weights
/// may be any finite numbers; their magnitudes count. Loops are ignored and cycles are allowed. A
/// step takes O(M C d) time, where C is the number of negatives, and O(M d + pairs) memory. The
/// bits are the same for any number of threads.
///
/// Throws c10::ValueError that names the argument, the expectation and the value.
///
/// Sources: Xu et al., arXiv 2509.16629, Eq. 11 to 21, with the corrections in
/// docs/causal/embedding.md; Mishne et al., arXiv 2211.00181, for the tangent coordinates.
NSIMPLEX_API CausalEmbedding causal_embed(const at::Tensor& adjacency,
                                          const CausalEmbeddingOptions& options = {});

/// Says in one line why an embedding, or angles made of it, is uninformative; empty if it is
/// informative. The reasons are: most nodes with edges lie within 0.05 of the origin, all nodes lie
/// in one point, or the graph has no edges. Without a graph all points count. O(M d + edges).
NSIMPLEX_API std::string causal_embedding_warning(
    const at::Tensor& tangents, const std::optional<at::Tensor>& adjacency = std::nullopt);

/// How well distances identify the ancestors of a node.
struct CausalRanking {
  double mean_rank;  ///< 1 is perfect
  double map;        ///< mean average precision over nodes
  int64_t pairs;
};

/// For every node n and every ancestor a of n (`adjacency` has a path from a to n), this is the
/// rank of a by its distance from n, among a and all nodes that are not ancestors of n. Ties count
/// against a (Nickel and Kiela, arXiv 1705.08039). Without edges the results are NaN. O(M^2 d + M
/// edges).
NSIMPLEX_API CausalRanking causal_ranking(const at::Tensor& tangents, const at::Tensor& adjacency);

/// Distances [M, M] of points with tangents [M, d], float64. They are exact to rounding at any
/// radius up to 300.
NSIMPLEX_API at::Tensor hyperbolic_distances(const at::Tensor& tangents);

/// (cosh r, sinh r u) [.., d + 1] of tangents [.., d], Eq. 11; differentiable. If the dtype cannot
/// represent a point (r above about 88 in float32, 700 in float64), the point is moved to the
/// largest radius that it can represent, in the same direction.
NSIMPLEX_API at::Tensor hyperboloid_points(const at::Tensor& tangents);

/// tanh(r / 2) u [.., d] (Eq. A.22 of the above); differentiable. The result is always inside the
/// open unit ball: the norm is at most 1 - 4 epsilon of the dtype, which tanh reaches at r = 15.2
/// in float32 and 35.3 in float64. Farther points keep their direction, lose their distance and
/// have a derivative of 0 along it. Use tangents for such points.
NSIMPLEX_API at::Tensor ball_points(const at::Tensor& tangents);

/// The inverse of ball_points(): 2 artanh(|e|) e / |e|, always finite. A point on or outside the
/// sphere is treated as the dtype's last point inside it, at r = 17.3 in float32 and 37.4 in
/// float64. Below that radius the error of r is about epsilon e^r / 4.
NSIMPLEX_API at::Tensor ball_tangents(const at::Tensor& ball);

/// Options of causal_angles(), which turns coordinates into angles.
struct CausalAnglesOptions {
  int64_t heads = 0;  ///< 0: all heads share one table [T, d]; else [T, heads, d / heads]
  double scale = 0.78539816339744831;  ///< c = pi / 4
  bool by_dimension = false;  ///< c sqrt(d), so that the size of angles does not depend on d
  std::optional<at::Tensor> head_scale = {};  ///< [heads], learned: multiplies c per head
  int64_t leading = 0;  ///< tokens before the features (<cls>); they are not rotated
};

/// The rotary angles c e of points `ball` [M, d]: [leading + M, ..], in the form of
/// RotaryOptions::angles. Plane t of a head turns by its coordinate t. Heads take consecutive
/// coordinates. A head of D channels in chunks of p (2 for the dot product, N + 1 for the
/// determinant of order N) has D / p * floor(p / 2) planes. Differentiable in ball and head_scale.
///
/// Source: Xu et al., Eq. 24 to 26.
NSIMPLEX_API at::Tensor causal_angles(const at::Tensor& ball,
                                      const CausalAnglesOptions& options = {});

}  // namespace nsimplex
