#pragma once

#include <nsimplex/causal_options.h>

#include "support/names.h"

namespace nsimplex::causal {

inline constexpr Names<StructureEstimator, 7> kEstimatorNames{
    {{"order", StructureEstimator::order},
     {"logdet", StructureEstimator::logdet},
     {"paper", StructureEstimator::paper},
     {"paper-lowrank", StructureEstimator::paper_lowrank},
     {"lowrank", StructureEstimator::lowrank},
     {"notears", StructureEstimator::notears},
     {"spectral", StructureEstimator::spectral}}};

inline constexpr Names<EmbeddingOptimiser, 3> kOptimiserNames{
    {{"tangent", EmbeddingOptimiser::tangent},
     {"radam", EmbeddingOptimiser::radam},
     {"rsgd", EmbeddingOptimiser::rsgd}}};
inline constexpr Names<AttractionSide, 2> kSideNames{
    {{"both", AttractionSide::both}, {"causes", AttractionSide::causes}}};
inline constexpr Names<AttractionWeight, 2> kWeightNames{
    {{"paths", AttractionWeight::paths}, {"direct", AttractionWeight::direct}}};
inline constexpr Names<DanglingRule, 2> kDanglingNames{
    {{"uniform", DanglingRule::uniform}, {"eigenvector", DanglingRule::eigenvector}}};

inline constexpr Names<CausalGraph, 2> kGraphNames{
    {{"er", CausalGraph::erdos_renyi}, {"sf", CausalGraph::scale_free}}};
inline constexpr Names<CausalMechanism, 3> kMechanismNames{{{"linear", CausalMechanism::linear},
                                                            {"mlp", CausalMechanism::mlp},
                                                            {"gp", CausalMechanism::additive_gp}}};
inline constexpr Names<CausalNoise, 3> kNoiseNames{{{"gaussian", CausalNoise::gaussian},
                                                    {"exponential", CausalNoise::exponential},
                                                    {"gumbel", CausalNoise::gumbel}}};

inline constexpr Names<MissingValues, 3> kMissingNames{{{"refuse", MissingValues::refuse},
                                                        {"rows", MissingValues::rows},
                                                        {"means", MissingValues::means}}};

}  // namespace nsimplex::causal
