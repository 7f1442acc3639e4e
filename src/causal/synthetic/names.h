#pragma once

#include <nsimplex/causal_synthetic_options.h>

#include "causal/names.h"

namespace nsimplex::causal {

inline constexpr Names<CausalGraph, 2> kGraphNames{
    {{"er", CausalGraph::erdos_renyi}, {"sf", CausalGraph::scale_free}}};
inline constexpr Names<CausalMechanism, 3> kMechanismNames{{{"linear", CausalMechanism::linear},
                                                            {"mlp", CausalMechanism::mlp},
                                                            {"gp", CausalMechanism::additive_gp}}};
inline constexpr Names<CausalNoise, 3> kNoiseNames{{{"gaussian", CausalNoise::gaussian},
                                                    {"exponential", CausalNoise::exponential},
                                                    {"gumbel", CausalNoise::gumbel}}};

}  // namespace nsimplex::causal
