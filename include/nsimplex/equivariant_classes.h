// The equality classes of equivariant layers.

#pragma once

#include <nsimplex/symmetry.h>
#include <nsimplex/version.h>

#include <cstdint>
#include <string>
#include <vector>

namespace nsimplex {

/// The order of a tensor and the tuples that it holds, as an equivariant layer needs them.
struct TensorKind {
  int64_t order = 1;  ///< 0: one row per graph, 1: nodes, 2: pairs, ..
  Symmetry symmetry = Symmetry::ordered;

  /// For undirected tensors: whether hyperedges may contain a node twice. Ordered tensors always
  /// have such tuples, loop_free ones never.
  bool loops = true;

  bool has_loops() const {
    return symmetry == Symmetry::ordered || (symmetry == Symmetry::undirected && loops);
  }
};

/// A set partition of the positions i1 .. ik j1 .. jl. Entry p is the number of the block of
/// position p. Blocks are numbered in the order in which they appear (a restricted growth string).
using Partition = std::vector<int8_t>;

/// A class of an equivariant layer k -> l: an equality pattern of (i, j), where i is a tuple of the
/// input and j one of the output, or several patterns that share one weight.
struct EquivariantClass {
  /// In canonical order. There is one member unless a side is undirected. Then the members are all
  /// patterns that permutations of that side's positions make from the first.
  std::vector<Partition> members;

  int64_t key_only = 0;    ///< blocks of input positions only: these are summed over
  int64_t query_only = 0;  ///< blocks of output positions only
  int64_t shared = 0;      ///< blocks of both

  /// Without a sum: the output tuple determines every input tuple that contributes.
  bool light() const { return key_only == 0; }
};

enum class ClassSet {
  all,
  light,  ///< those that do not sum over the input
};

/// Largest k + l of a full layer (877 classes), and of a light one.
inline constexpr int64_t kMaxClassOrder = 7, kMaxLightOrder = 10;

/// The classes of L_{k->l} in canonical order: lexicographic in the block numbers of i1 .. jl of
/// their first member. Their number is
///
///     ordered        b(k + l), the Bell number: 2, 5, 15, 52, 203, 877 for k + l = 2 .. 7
///     loop_free      sum_r C(k, r) C(l, r) r!  of both sides: 7 for 2 -> 2, 34 for 3 -> 3
///     undirected     9 for 2 -> 2, 31 for 3 -> 3; without loops min(k, l) + 1
///
/// The two sides may have different kinds. Bias classes are those of 0 -> l.
///
/// Errors: c10::ValueError for a negative order, or k + l above kMaxClassOrder (ClassSet::all) or
/// kMaxLightOrder (light).
///
/// Sources: Kim, Oh and Hong, arXiv 2110.14416, equations 1, 2 and 14; Maron et al., arXiv
/// 1812.09902.
NSIMPLEX_API std::vector<EquivariantClass> equivariant_classes(const TensorKind& input,
                                                               const TensorKind& output,
                                                               ClassSet set = ClassSet::all);

/// "{i1 j1}{i2 j2}", or "{}" without positions. The first `inputs` positions are i1, i2, ..
NSIMPLEX_API std::string partition_name(const Partition& partition, int64_t inputs);

/// The Bell number b(count): the number of set partitions of `count` elements.
NSIMPLEX_API int64_t bell_number(int64_t count);

}  // namespace nsimplex
