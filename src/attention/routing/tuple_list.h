#pragma once

#include <nsimplex/routing.h>

#include <vector>

#include "kernels/common/dense_problem.h"

namespace nsimplex::routing {

/// The list of tuples given by columns, N of [nnz], whose owners, (batch entry, query) flattened,
/// never fall.
TupleList list_of_rows(std::vector<at::Tensor> columns, const at::Tensor& owner, int64_t batch,
                       int64_t queries);

}  // namespace nsimplex::routing
