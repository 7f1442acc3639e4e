// Names of the enums of causal options, as commands and files spell them.

#pragma once

#include <nsimplex/causal_options.h>

#include "support/names.h"

namespace nsimplex {

template <>
inline constexpr Names<StructureEstimator, 8> kNames<StructureEstimator>{
    {{"auto", StructureEstimator::automatic},
     {"order", StructureEstimator::order},
     {"logdet", StructureEstimator::logdet},
     {"paper", StructureEstimator::paper},
     {"paper-lowrank", StructureEstimator::paper_lowrank},
     {"lowrank", StructureEstimator::lowrank},
     {"notears", StructureEstimator::notears},
     {"spectral", StructureEstimator::spectral}}};

template <>
inline constexpr Names<ColumnKind, 4> kNames<ColumnKind>{{{"continuous", ColumnKind::continuous},
                                                          {"binary", ColumnKind::binary},
                                                          {"count", ColumnKind::count},
                                                          {"category", ColumnKind::category}}};

template <>
inline constexpr Names<Resampling, 2> kNames<Resampling>{
    {{"halves", Resampling::halves}, {"bootstrap", Resampling::bootstrap}}};

template <>
inline constexpr Names<EmbeddingOptimiser, 3> kNames<EmbeddingOptimiser>{
    {{"tangent", EmbeddingOptimiser::tangent},
     {"radam", EmbeddingOptimiser::radam},
     {"rsgd", EmbeddingOptimiser::rsgd}}};
template <>
inline constexpr Names<AttractionSide, 2> kNames<AttractionSide>{
    {{"both", AttractionSide::both}, {"causes", AttractionSide::causes}}};
template <>
inline constexpr Names<AttractionWeight, 2> kNames<AttractionWeight>{
    {{"paths", AttractionWeight::paths}, {"direct", AttractionWeight::direct}}};
template <>
inline constexpr Names<DanglingRule, 2> kNames<DanglingRule>{
    {{"uniform", DanglingRule::uniform}, {"eigenvector", DanglingRule::eigenvector}}};

template <>
inline constexpr Names<CausalGraph, 2> kNames<CausalGraph>{
    {{"er", CausalGraph::erdos_renyi}, {"sf", CausalGraph::scale_free}}};
template <>
inline constexpr Names<CausalMechanism, 3> kNames<CausalMechanism>{
    {{"linear", CausalMechanism::linear},
     {"mlp", CausalMechanism::mlp},
     {"gp", CausalMechanism::additive_gp}}};
template <>
inline constexpr Names<CausalNoise, 3> kNames<CausalNoise>{
    {{"gaussian", CausalNoise::gaussian},
     {"exponential", CausalNoise::exponential},
     {"gumbel", CausalNoise::gumbel}}};

template <>
inline constexpr Names<MissingValues, 4> kNames<MissingValues>{
    {{"refuse", MissingValues::refuse},
     {"rows", MissingValues::rows},
     {"means", MissingValues::means},
     {"likelihood", MissingValues::likelihood}}};

template <>
inline constexpr Names<ScreenCriterion, 2> kNames<ScreenCriterion>{
    {{"correlation", ScreenCriterion::correlation}, {"variance", ScreenCriterion::variance}}};

}  // namespace nsimplex
