#include "io/graph_formats.h"

#include "fuzz/fuzz.h"

using namespace nsimplex;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::try_read({data, size}, [](const io::Source& source) { io::parse_graphs(source); });
  return 0;
}
