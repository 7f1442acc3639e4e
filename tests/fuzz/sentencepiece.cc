#include "data/sentencepiece_model.h"

#include "fuzz/fuzz.h"

using namespace nsimplex;

// The bytes are judged as they are, and as the table of a normalizer, where most of the work is.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto message = [](int number, std::string_view content) {
    std::string text(1, static_cast<char>(number << 3 | 2));
    size_t left = content.size();
    for (; left > 127; left >>= 7) text += static_cast<char>((left & 127) | 128);
    return text + static_cast<char>(left) + std::string(content);
  };
  const std::string table = message(1, message(1, "piece")) + message(3, message(2, bytes));
  for (const std::string_view model : {bytes, std::string_view(table)}) {
    const std::string fault = data::fault_of_sentencepiece(model);
    if (printable(fault) != fault) __builtin_trap();
  }
  return 0;
}
