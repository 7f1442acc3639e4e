#pragma once

/// Marks what libnsimplex.so exports; everything else is hidden.

#define NSIMPLEX_API __attribute__((visibility("default")))

namespace nsimplex {

/// Version of the loaded library, "major.minor.patch".
NSIMPLEX_API const char* version();

}  // namespace nsimplex
