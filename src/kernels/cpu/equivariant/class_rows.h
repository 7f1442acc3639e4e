#pragma once

#include <cstdint>

#include "kernels/common/class_rows_problem.h"

namespace nsimplex::kernels {

/// Blocks of rows, whatever is done to them.
int64_t class_row_tasks(int64_t rows);

/// Channels of a row of directions: whole vectors.
int64_t padded_channels(int64_t channels);

void run_features(const ReluFeatures<float>& problem, int64_t task);
void run_features(const ReluFeatures<double>& problem, int64_t task);
void run_features_backward(const ReluFeaturesBackward<float>& problem, int64_t task);
void run_features_backward(const ReluFeaturesBackward<double>& problem, int64_t task);
void run_class_output(const ClassOutput<float>& problem, int64_t task);
void run_class_output(const ClassOutput<double>& problem, int64_t task);

/// All rows: those of a task belong to a problem of their own.
void add_seen_rows(const SeenRows<float>& problem);
void add_seen_rows(const SeenRows<double>& problem);

}  // namespace nsimplex::kernels
