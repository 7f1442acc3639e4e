#pragma once

#include <nsimplex/symmetry.h>

#include <string_view>

namespace nsimplex::graph {

/// "ordered", "loop_free" or "undirected"; anything else is a c10::ValueError that names
/// `function`.
Symmetry parse_symmetry(std::string_view name, const char* function);

}  // namespace nsimplex::graph
