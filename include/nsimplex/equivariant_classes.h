#pragma once

#include <nsimplex/symmetry.h>
#include <nsimplex/version.h>

#include <cstdint>
#include <string>
#include <vector>

namespace nsimplex {

/// What an equivariant layer knows of a tensor: its order and which tuples it holds.
struct TensorKind {
  int64_t order = 1;  ///< 0: one row a graph, 1: nodes, 2: pairs, ..
  Symmetry symmetry = Symmetry::ordered;

  /// Of an undirected tensor: whether hyperedges that name a node twice occur. Ordered tensors
  /// always have them, loop_free ones never.
  bool loops = true;

  bool has_loops() const {
    return symmetry == Symmetry::ordered || (symmetry == Symmetry::undirected && loops);
  }
};

/// A set partition of the positions i1 .. ik j1 .. jl: entry p is the number of the block of
/// position p, blocks being numbered in the order in which they appear (a restricted growth
/// string).
using Partition = std::vector<int8_t>;

/// A class of an equivariant layer k -> l: an equality pattern of (i, j), i a tuple of the input
/// and j one of the output, or several patterns that share one weight.
struct EquivariantClass {
  /// In canonical order. One, unless a side is undirected: then all that permuting the positions of
  /// that side makes of the first.
  std::vector<Partition> members;

  int64_t key_only = 0;    ///< blocks of input positions alone: these are summed over
  int64_t query_only = 0;  ///< blocks of output positions alone
  int64_t shared = 0;      ///< blocks of both

  /// No sum: every input tuple that counts is named by the output tuple.
  bool light() const { return key_only == 0; }
};

enum class ClassSet {
  all,
  light,  ///< those that do not sum over the input
};

/// Largest k + l of a full layer (877 classes), and of a lightweight one.
inline constexpr int64_t kMaxClassOrder = 7, kMaxLightOrder = 10;

/// The classes of L_{k->l} in canonical order: lexicographic in the block numbers of i1 .. jl of
/// their first member. Their number is
///
///     ordered        b(k + l), the Bell number: 2, 5, 15, 52, 203, 877 for k + l = 2 .. 7
///     loop_free      sum_r C(k, r) C(l, r) r!  of both sides: 7 for 2 -> 2, 34 for 3 -> 3
///     undirected     9 for 2 -> 2, 31 for 3 -> 3; without loops min(k, l) + 1
///
/// The two sides may differ in kind. Bias classes are those of 0 -> l.
///
/// Errors: c10::ValueError for a negative order, or k + l above kMaxClassOrder (ClassSet::all) or
/// kMaxLightOrder (light).
/// Sources: Kim, Oh and Hong, arXiv 2110.14416, equations 1, 2 and 14; Maron et al., arXiv
/// 1812.09902.
NSIMPLEX_API std::vector<EquivariantClass> equivariant_classes(const TensorKind& input,
                                                               const TensorKind& output,
                                                               ClassSet set = ClassSet::all);

/// "{i1 j1}{i2 j2}"; "{}" where there are no positions. The first `inputs` positions are i1, i2, ..
NSIMPLEX_API std::string partition_name(const Partition& partition, int64_t inputs);

/// b(count): set partitions of `count` things.
NSIMPLEX_API int64_t bell_number(int64_t count);

}  // namespace nsimplex
