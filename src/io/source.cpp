#include "io/source.h"

#include "support/error.h"

namespace nsimplex::io {

void Source::fail(const std::string& why) const {
  throw InputError("cannot read " + name + ": " + why);
}

std::span<const uint8_t> Source::part(uint64_t begin, uint64_t count) const {
  if (begin > bytes.size() || count > bytes.size() - begin) {
    fail("truncated: " + std::to_string(count) + " bytes expected from byte " +
         std::to_string(begin) + " on, there are " + std::to_string(bytes.size()) + " in all");
  }
  return bytes.subspan(begin, count);
}

uint64_t Source::little(uint64_t begin, int count) const {
  uint64_t number = 0;
  int shift = 0;
  for (const uint8_t byte : part(begin, count)) {
    number |= uint64_t{byte} << shift;
    shift += 8;
  }
  return number;
}

}  // namespace nsimplex::io
