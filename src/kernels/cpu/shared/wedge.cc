// Makes the tables of signed products from which determinants are computed.

#include "kernels/cpu/shared/wedge.h"

#include <array>
#include <bit>

namespace nsimplex::kernels::dense {
namespace {

// Sets of `size` of the coordinates 0 .. N as bit masks, in ascending order.
std::vector<unsigned> coordinate_sets(int order, int size) {
  std::vector<unsigned> sets;
  for (unsigned set = 0; set < 1u << (order + 1); ++set) {
    if (std::popcount(set) == size) sets.push_back(set);
  }
  return sets;
}

int index_of(const std::vector<unsigned>& sets, unsigned wanted) {
  int index = 0;
  while (sets[index] != wanted) ++index;
  return index;
}

// (-1) to the power of the number of members of `set` above `coordinate`.
float sign_of(unsigned set, int coordinate) {
  return std::popcount(set >> (coordinate + 1)) % 2 == 0 ? 1.0f : -1.0f;
}

WedgeTable make_table(int order) {
  WedgeTable table;
  for (int p = 0; p + 1 < order; ++p) {
    const std::vector<unsigned> from = coordinate_sets(order, p + 1);
    const std::vector<unsigned> to = coordinate_sets(order, p + 2);
    const bool last = p + 2 == order;
    WedgeStep step;
    step.targets = static_cast<int>(to.size());
    for (int target = 0; target < step.targets; ++target) {
      // The sets of N coordinates in descending order lack coordinates 0, 1, .., N. Their dual is
      // the component that is multiplied by the missing coordinate in the wedge.
      const unsigned set = last ? to[step.targets - 1 - target] : to[target];
      const float dual = last ? sign_of(set, target) : 1.0f;
      for (int a = 0; a <= order; ++a) {
        const unsigned bit = 1u << a;
        if (!(set & bit)) continue;
        step.terms.push_back({target, index_of(from, set ^ bit), a, dual * sign_of(set ^ bit, a)});
      }
    }
    table.steps.push_back(std::move(step));
  }
  return table;
}

}  // namespace

const WedgeTable& wedge_table(int order) {
  static const std::array<WedgeTable, kMaxOrder + 1> tables = [] {
    std::array<WedgeTable, kMaxOrder + 1> all;
    for (int n = 1; n <= kMaxOrder; ++n) all[n] = make_table(n);
    return all;
  }();
  return tables[order];
}

}  // namespace nsimplex::kernels::dense
