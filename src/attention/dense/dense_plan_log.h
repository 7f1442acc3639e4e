#pragma once

#include <string_view>

#include "attention/dense/dense_kernel.h"

namespace nsimplex::dense {

/// With NSIMPLEX_PLAN=1, writes how the CPU kernel cuts a call of `order` key axes as one line to
/// standard error: axes in working order, rows of a block, keys of a panel, cuts of the queries (of
/// the inner keys: splits), tasks of every phase, memory and SIMD level.
void log_plan(std::string_view operation, int order, const kernels::DensePlan& plan,
              const KernelMemory& memory);

}  // namespace nsimplex::dense
