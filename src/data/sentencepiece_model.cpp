// Checks that a SentencePiece model is safe to load.

#include "data/sentencepiece_model.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "io/text.h"

namespace nsimplex::data {
namespace {

// A fault in the form in which the caller is told.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// One field of a protocol buffer. For a number only `number` is set, for text or a message also
// `bytes`.
struct Field {
  uint64_t number = 0;
  bool is_bytes = false;
  uint64_t value = 0;
  std::string_view bytes;
};

// Reads the fields of a message in order (protobuf.dev/programming-guides/encoding).
class Message {
 public:
  explicit Message(std::string_view rest) : rest_(rest) {}

  // False at the end of the message.
  bool next(Field& field) {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    field = {.number = tag >> 3};
    switch (tag & 7) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.value = fixed(8);
        break;
      case 2:
        field.is_bytes = true;
        field.bytes = take(varint());
        break;
      case 5:
        field.value = fixed(4);
        break;
      default:
        throw Fault("a field of a kind that is not in use");
    }
    return true;
  }

 private:
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) throw Fault("it ends too early");
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  uint64_t fixed(int bytes) {
    uint64_t value = 0;
    int shift = 0;
    for (const char byte : take(static_cast<uint64_t>(bytes))) {
      value |= static_cast<uint64_t>(static_cast<uint8_t>(byte)) << shift;
      shift += 8;
    }
    return value;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1).front());
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw Fault("a number of more than 64 bits");
  }

  std::string_view rest_;
};

void check_piece(std::string_view bytes) {
  Message message(bytes);
  for (Field field; message.next(field);) {
    if (field.number == 1 && field.is_bytes) {
      const std::span text(reinterpret_cast<const uint8_t*>(field.bytes.data()),
                           field.bytes.size());
      io::Text({"a piece", text});  // throws if it is not UTF-8
    }
    if (field.number == 2 &&
        !std::isfinite(std::bit_cast<float>(static_cast<uint32_t>(field.value)))) {
      throw Fault("a score that is not finite");
    }
  }
}

// A unit of a double-array trie in the layout of Darts-clone. From the node of unit i, byte c leads
// to unit (i ^ offset(i) ^ c), which is the right one if its label is c.
struct Unit {
  uint32_t bits;

  bool has_value() const { return (bits >> 8 & 1) != 0; }
  uint32_t label() const { return bits & 0x800000ffU; }
  uint32_t value() const { return bits & 0x7fffffffU; }
  uint32_t offset() const { return (bits >> 10) << ((bits & 0x200U) >> 6); }
};

// The table is a trie of texts to be replaced, followed by their replacements: texts that end with
// a zero byte. The trie's values are places in the second part. This follows every path that some
// text can take.
void check_normalizer_table(std::string_view table) {
  if (table.empty()) return;
  if (table.size() < 4) throw Fault("a table of the normalizer without a size");
  const auto word = [&](size_t at) {
    std::array<uint8_t, 4> bytes;
    std::memcpy(bytes.data(), table.data() + at, bytes.size());
    return static_cast<uint32_t>(bytes[0] | bytes[1] << 8 | bytes[2] << 16) |
           static_cast<uint32_t>(bytes[3]) << 24;
  };
  const size_t size = word(0);
  if (size % 4 != 0 || size == 0 || size > table.size() - 4)
    throw Fault("a table of the normalizer of a wrong size");
  const size_t units = size / 4;
  const std::string_view replacements = table.substr(4 + size);
  if (replacements.empty() || replacements.back() != '\0') {
    throw Fault("a table of the normalizer whose texts do not end");
  }

  const auto unit = [&](size_t at) { return Unit{word(4 + 4 * at)}; };
  std::vector<bool> seen(units);
  std::vector<size_t> open = {0};
  seen[0] = true;
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    const size_t base = node ^ unit(node).offset();
    if ((base | 255) >= units) throw Fault("a table of the normalizer that leads out of itself");
    if (unit(node).has_value() && unit(base).value() >= replacements.size()) {
      throw Fault("a table of the normalizer that leads behind its texts");
    }
    for (size_t byte = 0; byte < 256; ++byte) {
      const size_t next = base ^ byte;
      if (seen[next] || unit(next).label() != byte) continue;
      seen[next] = true;
      open.push_back(next);
    }
  }
}

void check_normalizer(std::string_view bytes) {
  Message message(bytes);
  for (Field field; message.next(field);) {
    if (field.number == 2 && field.is_bytes) check_normalizer_table(field.bytes);
  }
}

void check_model(std::string_view bytes) {
  constexpr uint64_t kPiece = 1, kNormalizer = 3, kDenormalizer = 5;
  bool any = false;
  Message message(bytes);
  for (Field field; message.next(field);) {
    if (!field.is_bytes) continue;
    if (field.number == kPiece) check_piece(field.bytes);
    if (field.number == kNormalizer || field.number == kDenormalizer) check_normalizer(field.bytes);
    any = any || field.number == kPiece;
  }
  if (!any) throw Fault("it has no pieces");
}

}  // namespace

std::string fault_of_sentencepiece(std::string_view model) {
  try {
    check_model(model);
    return "";
  } catch (const std::runtime_error& fault) {  // Fault, or the error of io::Text for a piece
    return fault.what();
  }
}

}  // namespace nsimplex::data
