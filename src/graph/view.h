#pragma once

#include <nsimplex/graph.h>

#include "graph/tuple_faults.h"

namespace nsimplex::graph {

/// Contiguous int64 tensors as what the Torch-free code of this folder takes. The views live as
/// long as the tensors.
Rows view_rows(const at::Tensor& matrix);
TupleView view(const TupleBatch& batch);

}  // namespace nsimplex::graph
