#pragma once

#include "equivariant/sparse/sums_call.h"

namespace nsimplex::equivariant {

/// Refuses a plan whose numbers would lead a kernel out of its arrays: one that equivariant_plan() did not make, or that
/// was changed since. Reads the values, which lie on the CPU; one pass, O(bytes of the plan). The tensors have passed
/// check_sums() or check_transposed().
void check_plan_values(const SumsCall& call, const char* name);

}  // namespace nsimplex::equivariant
