#pragma once

#include <cstdint>

// What plans and tasks of the class sums agree on.

namespace nsimplex::kernels::equivariant {

/// Entries of a task of a segment sum and output rows of a task of class sums: some tens of
/// microseconds at 32 channels, enough to pay for handing a task out.
inline constexpr int64_t kTaskEntries = 4096;
inline constexpr int64_t kTaskRows = 256;

}  // namespace nsimplex::kernels::equivariant
