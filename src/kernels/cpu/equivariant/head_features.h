#pragma once

#include <cstdint>

#include "kernels/common/equivariant_problems.h"

namespace nsimplex::kernels {

/// Channels of a row of directions: whole vectors.
int64_t padded_channels(int64_t channels);

/// Tasks of all three: class_row_tasks(rows).
void run_features(const HeadFeatures<float>& problem, int64_t task);
void run_features(const HeadFeatures<double>& problem, int64_t task);
/// After all tasks of run_features(), with shifts chosen.
void run_exponentials(const HeadFeatures<float>& problem, int64_t task);
void run_exponentials(const HeadFeatures<double>& problem, int64_t task);
void run_features_backward(const HeadFeaturesBackward<float>& problem, int64_t task);
void run_features_backward(const HeadFeaturesBackward<double>& problem, int64_t task);

}  // namespace nsimplex::kernels
