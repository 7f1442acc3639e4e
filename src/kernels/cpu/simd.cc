#include "kernels/cpu/simd.h"

#include <hwy/highway.h>

namespace nsimplex::kernels {

std::vector<std::string> simd_levels() {
  std::vector<std::string> names;
  // A lower bit is a better target.
  for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    names.emplace_back(hwy::TargetName(rest & -rest));
  }
  return names;
}

std::string simd_level() { return simd_levels().front(); }

}  // namespace nsimplex::kernels
