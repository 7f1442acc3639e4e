// Returns the version of the library.

#include <nsimplex/version.h>

namespace nsimplex {

const char* version() { return NSIMPLEX_VERSION; }

}  // namespace nsimplex
