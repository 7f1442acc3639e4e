#include "fuzz/fuzz.h"
#include "io/safetensors_header.h"

using namespace nsimplex;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::try_read({data, size}, [](const io::Source& source) {
    const io::SafetensorsHeader header = io::parse_safetensors_header(source);
    for (const io::SafetensorsEntry& entry : header.entries) {
      source.part(header.data + entry.begin, entry.end - entry.begin);
    }
  });
  return 0;
}
