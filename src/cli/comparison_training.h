#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "training/comparison.h"

namespace nsimplex::cli {

/// training::train_arms with a progress bar named `label`, until Ctrl-C (Interrupted).
std::vector<training::ArmResult> train_arms_shown(
    const std::string& label, const std::vector<training::Arm>& arms,
    const training::TrainingOptions& training, const training::Corpus& corpus,
    const CommonOptions& options,
    const std::function<void(const training::ArmPoint&)>& on_point = {});

}  // namespace nsimplex::cli
