// Reads and writes NumPy arrays in the npy format.

#include "io/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <optional>

namespace nsimplex::io {
namespace {

// The header is a Python dictionary with three known keys. This parser reads only this part of the
// language.
class HeaderParser {
 public:
  explicit HeaderParser(const Source& source, std::string_view text)
      : source_(source), text_(text) {}

  NpyHeader parse() {
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        header_.descr = descr();
      } else if (key == "fortran_order") {
        header_.fortran = boolean();
      } else if (key == "shape") {
        header_.shape = shape();
        shaped_ = true;
      } else {
        bad();
      }
      if (!take(',') && peek() != '}') bad();
    }
    if (header_.descr.empty() || !shaped_) bad();
    return header_;
  }

 private:
  [[noreturn]] void bad() const { source_.fail("its header is not that of an npy file"); }

  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char letter) {
    if (peek() != letter || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char letter) {
    if (!take(letter)) bad();
  }

  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') bad();
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) bad();
    const std::string result(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return result;
  }

  // A name, or a list of fields. Brackets in it belong to the list and its entries.
  std::string descr() {
    if (peek() != '[') return string();
    const size_t begin = at_;
    int depth = 0;
    do {
      if (at_ >= text_.size()) bad();
      depth += text_[at_] == '[' ? 1 : text_[at_] == ']' ? -1 : 0;
      ++at_;
    } while (depth > 0);
    return std::string(text_.substr(begin, at_ - begin));
  }

  bool boolean() {
    peek();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True";
      }
    }
    bad();
  }

  std::vector<int64_t> shape() {
    std::vector<int64_t> extents;
    expect('(');
    while (!take(')')) {
      peek();
      int64_t extent = 0;
      const auto [end, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) bad();
      if (extents.size() == kMostAxes) {
        source_.fail(std::string("an array of more than ")
                         .append(std::to_string(kMostAxes))
                         .append(" axes, which NumPy does not have either"));
      }
      extents.push_back(extent);
      at_ = end - text_.data();
      take('L');  // Python 2 wrote long integers with an L
      if (!take(',') && peek() != ')') bad();
    }
    return extents;
  }

  const Source& source_;
  std::string_view text_;
  size_t at_ = 0;
  NpyHeader header_;
  bool shaped_ = false;
};

// Sets kind and width from a type such as "<f8", "|b1" or "<U12".
void set_type(const Source& source, const std::string& descr, Array& array) {
  const auto unsupported = [&](const std::string& why) {
    source.fail("elements of type " + quoted_name(descr) + " " + why);
  };
  const char order = descr[0];
  if (order == '>') unsupported("are big-endian, which is not supported");
  int64_t size = -1;
  const char* last = descr.data() + descr.size();
  if (descr.size() >= 3) {
    const auto [end, error] = std::from_chars(descr.data() + 2, last, size);
    if (error != std::errc() || end != last) size = -1;
  }
  const auto any_of = [&](std::initializer_list<int64_t> sizes) {
    return std::find(sizes.begin(), sizes.end(), size) != sizes.end();
  };
  // no string is longer, so that 4 x size does not overflow
  constexpr int64_t kLongest = int64_t{1} << 40;
  std::optional<ElementKind> kind;
  switch (descr.size() >= 3 && (order == '<' || order == '|' || order == '=') ? descr[1] : '?') {
    case 'b':
      if (any_of({1})) kind = ElementKind::boolean;
      break;
    case 'i':
      if (any_of({1, 2, 4, 8})) kind = ElementKind::signed_integer;
      break;
    case 'u':
      if (any_of({1, 2, 4, 8})) kind = ElementKind::unsigned_integer;
      break;
    case 'f':
      if (any_of({2, 4, 8})) kind = ElementKind::floating;
      break;
    case 'S':
      if (size > 0 && size < kLongest) kind = ElementKind::bytes;
      break;
    case 'U':
      if (size > 0 && size < kLongest) kind = ElementKind::text;
      break;
    default:
      break;
  }
  if (!kind) unsupported("are not supported");
  array.kind = *kind;
  array.width = *kind == ElementKind::text ? 4 * size : size;
}

// Bytes that a shape needs. Fails if no file can be that large.
uint64_t needed_bytes(const Source& source, const Array& array) {
  if (std::find(array.shape.begin(), array.shape.end(), 0) != array.shape.end()) return 0;
  uint64_t size = array.width;
  for (const int64_t extent : array.shape) {
    if (size > static_cast<uint64_t>(INT64_MAX / extent)) {
      source.fail("shape " + array.shape_text() + " is too large");
    }
    size *= extent;
  }
  return size;
}

// Converts elements in Fortran order, with the first axis fastest, to C order.
std::vector<uint8_t> c_order(const Array& array, std::span<const uint8_t> data) {
  std::vector<uint8_t> result(data.size());
  if (data.empty()) return result;
  // Axes of extent 1 are removed first, so that an element takes two steps on average for any
  // number of axes.
  std::vector<int64_t> shape;
  std::ranges::copy_if(array.shape, std::back_inserter(shape), [](int64_t e) { return e != 1; });
  const size_t dims = shape.size();
  std::vector<int64_t> place(dims, 0), stride(dims, array.width);
  for (size_t axis = 1; axis < dims; ++axis) stride[axis] = stride[axis - 1] * shape[axis - 1];
  int64_t from = 0;
  for (size_t to = 0; to < data.size(); to += array.width) {
    std::memcpy(result.data() + to, data.data() + from, array.width);
    for (size_t axis = dims; axis-- > 0;) {
      from += stride[axis];
      if (++place[axis] < shape[axis]) break;
      from -= stride[axis] * shape[axis];
      place[axis] = 0;
    }
  }
  return result;
}

}  // namespace

NpyHeader parse_npy_header(const Source& source) {
  if (!source.starts_with(kNpyMagic)) source.fail("not an npy file");
  const uint64_t version = source.little(6, 1);
  if (version < 1 || version > 3) {
    source.fail("npy format " + std::to_string(version) + " is not supported, only 1 to 3");
  }
  const int length_bytes = version == 1 ? 2 : 4;
  const uint64_t length = source.little(8, length_bytes), begin = 8 + length_bytes;
  if (length > kLongestHeader) {
    source.fail(std::string("a header of ")
                    .append(std::to_string(length))
                    .append(" bytes, more than ")
                    .append(std::to_string(kLongestHeader)));
  }
  const auto text = source.part(begin, length);
  NpyHeader header =
      HeaderParser(source, {reinterpret_cast<const char*>(text.data()), length}).parse();
  header.data = begin + length;
  return header;
}

namespace {

// Type and shape. Fails if they do not need exactly `size` bytes.
Array described(const Source& source, const NpyHeader& header, uint64_t size) {
  if (header.is_pickled()) {
    source.fail("its elements are pickled Python objects, which are never read");
  }
  Array array{source.name};
  set_type(source, header.descr, array);
  array.shape = header.shape;
  const uint64_t needed = needed_bytes(source, array), have = size - header.data;
  if (have != needed) {
    source.fail((have < needed ? "truncated: shape " : "too long: shape ") + array.shape_text() +
                " needs " + std::to_string(needed) + " bytes, there are " + std::to_string(have));
  }
  return array;
}

}  // namespace

void check_npy(const Source& source, const NpyHeader& header, uint64_t size) {
  described(source, header, size);
}

Array parse_npy(const Source& source) {
  const NpyHeader header = parse_npy_header(source);
  Array array = described(source, header, source.bytes.size());
  const auto data = source.bytes.subspan(header.data);
  const bool transpose = header.fortran && array.shape.size() > 1;
  array.data = transpose ? c_order(array, data) : std::vector<uint8_t>(data.begin(), data.end());
  if (array.kind == ElementKind::boolean &&
      std::any_of(array.data.begin(), array.data.end(), [](uint8_t byte) { return byte > 1; })) {
    source.fail("holds values that are not booleans");
  }
  return array;
}

std::string npy_bytes(std::span<const double> values, std::span<const int64_t> shape) {
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (";
  for (const int64_t size : shape) header.append(std::to_string(size)).append(", ");
  header.append("), }");
  // Elements begin at a multiple of 64 bytes, after 10 bytes and a header that ends with a newline.
  header.append(63 - (10 + header.size()) % 64, ' ').append("\n");
  std::string bytes(kNpyMagic);
  bytes.append("\x01").push_back('\0');
  bytes.push_back(static_cast<char>(header.size() & 0xff));
  bytes.push_back(static_cast<char>(header.size() >> 8));
  bytes.append(header);
  return bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

}  // namespace nsimplex::io
