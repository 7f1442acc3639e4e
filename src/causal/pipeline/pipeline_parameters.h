// Declares the options of a pipeline under the names that Python uses.

#pragma once

#include <nsimplex/causal_pipeline.h>
#include <nlohmann/json.hpp>

namespace nsimplex::causal {

/// The options under the names of the arguments of Python's constructor.
nlohmann::ordered_json parameters_of(const CausalPipelineOptions& options);

/// Options from parameters that C++ or Python wrote, now or in an earlier version, whose files have
/// fewer. Throws nlohmann::json::exception for a parameter of another type, and InputError for an
/// unknown name.
CausalPipelineOptions pipeline_options(const nlohmann::json& parameters);

}  // namespace nsimplex::causal
