#pragma once

#include <cstdint>

#include "kernels/common/equivariant_problems.h"

namespace nsimplex::kernels {

/// Blocks of rows, whatever is done to them.
int64_t class_row_tasks(int64_t rows);

void run_class_output(const ClassOutput<float>& problem, int64_t task);
void run_class_output(const ClassOutput<double>& problem, int64_t task);

/// All rows: those of a task belong to a problem of their own.
void add_seen_rows(const SeenRows<float>& problem);
void add_seen_rows(const SeenRows<double>& problem);

}  // namespace nsimplex::kernels
