#include "io/tuples.h"

#include "fuzz/fuzz.h"

using namespace nsimplex;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::try_read({data, size}, [](const io::Source& source) {
    if (io::parse_tuples(source).nodes() < 0) __builtin_trap();
  });
  return 0;
}
