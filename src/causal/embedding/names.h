#pragma once

#include <nsimplex/causal_embedding_options.h>

#include "causal/names.h"

namespace nsimplex::causal {

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

}  // namespace nsimplex::causal
