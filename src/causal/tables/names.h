#pragma once

#include <nsimplex/causal_options.h>

#include "causal/names.h"

namespace nsimplex::causal {

inline constexpr Names<MissingValues, 3> kMissingNames{{{"refuse", MissingValues::refuse},
                                                        {"rows", MissingValues::rows},
                                                        {"means", MissingValues::means}}};

}  // namespace nsimplex::causal
