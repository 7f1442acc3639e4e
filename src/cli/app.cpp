#include "cli/app.h"

#include <nsimplex/version.h>

#include <cstdio>

namespace nsimplex::cli {

int run(int, char**) {
  std::printf("nsimplex %s\n", version());
  return 0;
}

}  // namespace nsimplex::cli
