#include "io/table.h"

#include "fuzz/fuzz.h"

using namespace nsimplex;

// The first byte says how the others are to be read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const int choice = data[0];
  io::TableOptions options;
  options.text.header = static_cast<io::HeaderLine>(choice % 3);
  options.text.index = static_cast<io::IndexColumn>(choice / 3 % 3);
  if (choice / 9 % 2 == 1) options.text.comment = "%";
  options.allow_missing = choice / 18 % 2 == 0;
  if (choice / 36 % 2 == 1) options.text.delimiter = io::Delimiter::space;
  fuzz::try_read({data + 1, size - 1},
                 [&](const io::Source& source) { io::parse_table(source, options); });
  return 0;
}
