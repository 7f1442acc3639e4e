#pragma once

#include <nsimplex/export.h>

namespace nsimplex {

/// Version of the loaded library, "major.minor.patch".
NSIMPLEX_API const char* version();

}  // namespace nsimplex
