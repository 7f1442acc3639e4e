#pragma once

namespace nsimplex {

/// Which tuples a tensor over tuples of nodes may hold, and what two orders of one tuple mean.
enum class Symmetry {
  ordered,    ///< any tuple: (i, j) and (j, i) are two, (i, i) is a loop
  loop_free,  ///< ordered, with distinct entries
  undirected  ///< one tuple for all orders of its entries: the ascending one; loops allowed
};

}  // namespace nsimplex
