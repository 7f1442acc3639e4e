#include "io/edge_list.h"

#include "fuzz/fuzz.h"

using namespace nsimplex;

// GraphML, too, which the reader tells by its beginning.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::try_read({data, size}, [](const io::Source& source) {
    const io::EdgeList list = io::parse_edge_list(source);
    for (const int64_t node : list.edges) {
      if (node < 0 || node >= list.nodes) __builtin_trap();
    }
  });
  return 0;
}
