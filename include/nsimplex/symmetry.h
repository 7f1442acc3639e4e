// Which tuples a tensor over tuples of nodes may hold.

#pragma once

namespace nsimplex {

/// Which tuples a tensor over tuples of nodes may hold, and whether the order of their entries
/// counts.
enum class Symmetry {
  ordered,    ///< any tuple: (i, j) and (j, i) differ, (i, i) is a loop
  loop_free,  ///< ordered, with distinct entries
  undirected  ///< one ascending tuple for all permutations of its entries; loops allowed
};

}  // namespace nsimplex
