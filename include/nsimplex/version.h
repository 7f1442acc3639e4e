// The version of the library, and the mark of exported symbols.

#pragma once

/// Marks the symbols that libnsimplex.so exports; all others are hidden.

#define NSIMPLEX_API __attribute__((visibility("default")))

namespace nsimplex {

/// Version of the loaded library, "major.minor.patch".
NSIMPLEX_API const char* version();

}  // namespace nsimplex
