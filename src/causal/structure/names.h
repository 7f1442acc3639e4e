#pragma once

#include <nsimplex/causal_options.h>

#include "causal/names.h"

namespace nsimplex::causal {

inline constexpr Names<StructureEstimator, 7> kEstimatorNames{
    {{"order", StructureEstimator::order},
     {"logdet", StructureEstimator::logdet},
     {"paper", StructureEstimator::paper},
     {"paper-lowrank", StructureEstimator::paper_lowrank},
     {"lowrank", StructureEstimator::lowrank},
     {"notears", StructureEstimator::notears},
     {"spectral", StructureEstimator::spectral}}};

}  // namespace nsimplex::causal
