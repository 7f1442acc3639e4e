#include "cli/toml.h"

#include "fuzz/fuzz.h"

using namespace nsimplex;

// What is read is written and read again to the same values.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::try_read({data, size}, [](const io::Source& source) {
    for (const cli::TomlEntry& entry : cli::parse_toml(source.text())) {
      for (const std::string& value : entry.values) {
        const auto again = cli::parse_toml("a = " + cli::toml_value(value));
        if (again.size() != 1 || again[0].values.front() != value) __builtin_trap();
      }
    }
  });
  return 0;
}
