// Names this processor and its family, and says why a SIMD level is in use.

#pragma once

#include <string>
#include <vector>

#include "kernels/cpu/shared/simd.h"

// What tells people which processor a figure of speed is from, and why a SIMD level is in use.

namespace nsimplex::kernels {

/// The family of a processor: "AMD with AVX512-BF16", "Intel with AMX", "AMD with AVX2". `targets` are
/// Highway's, best first.
std::string family_name(const std::string& vendor, Processor processor,
                        const std::vector<std::string>& targets);

/// Why the first of `preferred_levels` is the first, in one clause.
std::string preference_reason(Processor processor, const std::vector<std::string>& targets);

/// The name that this processor gives itself, "" if it gives none, and its family.
std::string processor_name();
std::string processor_family();

/// Why simd_level() is in use: NSIMPLEX_SIMD or a caller named it, or preference_reason().
std::string simd_level_reason();

}  // namespace nsimplex::kernels
