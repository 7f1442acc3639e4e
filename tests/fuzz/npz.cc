#include "io/npz.h"

#include "fuzz/fuzz.h"

using namespace nsimplex;

// Few mutants have the right checksum, so that their arrays are read past it, too.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span bytes(data, size);
  fuzz::try_read(bytes, [](const io::Source& source) { io::Npz(source).read_matrix(); });
  fuzz::try_read(bytes, [](const io::Source& source) {
    constexpr uint64_t kMost = 1 << 20;
    const io::Zip zip(source);
    for (const io::ZipEntry& entry : zip.entries()) {
      fuzz::try_read(zip.beginning(entry, kMost),
                     [](const io::Source& array) { io::parse_npy(array); });
    }
  });
  return 0;
}
