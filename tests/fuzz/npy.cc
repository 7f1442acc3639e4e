#include "io/npy.h"

#include "fuzz/fuzz.h"

using namespace nsimplex;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::try_read({data, size}, [](const io::Source& source) {
    const io::Array array = io::parse_npy(source);
    if (array.is_number()) {
      array.doubles();
      array.integers();
    } else {
      array.strings();
    }
  });
  return 0;
}
