#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/causal_options.h>
#include <nsimplex/version.h>

#include <cstdint>
#include <optional>
#include <string>

/// A causal graph as points of hyperbolic space, and these as angles of a rotary encoding.
namespace nsimplex {

struct CausalEmbedding {
  at::Tensor tangents;    ///< float64 [M, d]: z = r u, distance from the origin and direction
  at::Tensor generality;  ///< float64 [M]: pi, sums to 1; larger for causes of much
  double loss;            ///< Eq. 15 at the end, over all negatives or the last step's
  int64_t hops;           ///< what was used
  AttractionSide side;
  int64_t without_negatives;  ///< nodes that every other one attracts: their distances mean nothing
  double seconds;
};

/// Places the nodes of a weighted graph in hyperbolic space, so that what is joined is near and
/// what causes much is near the origin. Minimises, over all nodes m,
///
///     1/M sum_m [ - sum_{n in N+(m)} w_mn log( e^-d_mn / (e^-d_mn + sum_{n' in N-(m)} e^-d_mn') )
///                 + lambda_g sqrt(W_m W) M pi_m log cosh d(m, o) ]
///
/// with W_m the sum of the node's w_mn, W the mean of those that are not 0, and pi the PageRank of a
/// walk from effects to causes. Both are of |A| in a form that knows neither the units of nodes nor
/// a common factor (src/causal/embedding/embed.h), so that the points are the same for D^-1 A D
/// and c A. Without `relative` the pull is lambda_g pi_m d(m, o), without `balanced` the weights are
/// as given: as printed. adjacency [M, M], dense or sparse COO,
/// float, on the CPU; A_ij belongs to i -> j, any finite weights, their magnitudes count; loops do
/// not. Cycles are allowed. A step takes O(M C d) time, C the number of negatives, and O(M d +
/// pairs) memory; the same bits for any number of threads.
///
/// Throws c10::ValueError that names the argument, what was expected and what came.
///
/// Sources: Xu et al., arXiv 2509.16629, Eq. 11 to 21, corrected as docs/causal/embedding.md says;
/// Mishne et al., arXiv 2211.00181, for the tangent coordinates.
NSIMPLEX_API CausalEmbedding causal_embed(const at::Tensor& adjacency,
                                          const CausalEmbeddingOptions& options = {});

/// Why an embedding, or angles made of it, carries nothing, in one line; empty where it does. Most
/// nodes that have edges lie within 0.05 of the origin, all lie in one point, or the graph has no
/// edges. Without a graph all points count. O(M d + edges).
NSIMPLEX_API std::string causal_embedding_warning(
    const at::Tensor& tangents, const std::optional<at::Tensor>& adjacency = std::nullopt);

/// How well distances tell which nodes lead to a node.
struct CausalRanking {
  double mean_rank;  ///< 1 is perfect
  double map;        ///< mean over nodes of the average precision
  int64_t pairs;
};

/// For every node n and every ancestor a of n (a path of `adjacency` leads from a to n) the rank of
/// a by its distance from n, among a and all nodes that are no ancestors of n; ties count against a
/// (Nickel and Kiela, arXiv 1705.08039). Without edges NaN. O(M^2 d + M edges).
NSIMPLEX_API CausalRanking causal_ranking(const at::Tensor& tangents, const at::Tensor& adjacency);

/// Distances [M, M] of points by their tangents [M, d], float64: exact to rounding at any radius up
/// to 300.
NSIMPLEX_API at::Tensor hyperbolic_distances(const at::Tensor& tangents);

/// (cosh r, sinh r u) [.., d + 1] of tangents [.., d], Eq. 11; differentiable. A point farther out
/// than the dtype can say (r about 88 in float32, 700 in float64) is put at the last radius that it
/// can, in its own direction.
NSIMPLEX_API at::Tensor hyperboloid_points(const at::Tensor& tangents);

/// tanh(r / 2) u [.., d] (Eq. A.22 of the above); differentiable. Always inside the open unit ball:
/// the norm is at most 1 - 4 epsilon of the dtype, which tanh reaches at r = 15.2 in float32 and
/// 35.3 in float64. Farther points keep their direction, lose their distance and have a derivative
/// of 0 along it: work with tangents out there.
NSIMPLEX_API at::Tensor ball_points(const at::Tensor& tangents);

/// The inverse of ball_points(): 2 artanh(|e|) e / |e|, always finite. A point on or outside the
/// sphere counts as the last one of the dtype before it, at r = 17.3 in float32 and 37.4 in float64;
/// the error of r is about epsilon e^r / 4 before that.
NSIMPLEX_API at::Tensor ball_tangents(const at::Tensor& ball);

/// How coordinates become angles.
struct CausalAnglesOptions {
  int64_t heads = 0;  ///< 0: all heads share one table [T, d]; else [T, heads, d / heads]
  double scale = 0.78539816339744831;         ///< c = pi / 4
  bool by_dimension = false;                  ///< c sqrt(d), which keeps the angles' size for any d
  std::optional<at::Tensor> head_scale = {};  ///< [heads], learned: multiplies c, head by head
  int64_t leading = 0;  ///< tokens before the features (<cls>), which do not turn
};

/// The rotary angles c e of points `ball` [M, d]: [leading + M, ..] as RotaryOptions::angles takes
/// them. Plane t of a head turns by its coordinate t; heads take consecutive coordinates. A head of
/// D channels in chunks of p (2 for the dot product, N + 1 for the determinant of order N) has D /
/// p * floor(p / 2) planes. Differentiable in ball and head_scale.
///
/// Source: Xu et al., Eq. 24 to 26.
NSIMPLEX_API at::Tensor causal_angles(const at::Tensor& ball,
                                      const CausalAnglesOptions& options = {});

}  // namespace nsimplex
