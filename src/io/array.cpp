// Converts the elements of an array from a file to doubles, integers or strings.

#include "io/array.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "io/input_file.h"
#include "kernels/common/half.h"
#include "support/printable.h"

namespace nsimplex::io {
namespace {

constexpr double kLargestExact = 0x1p53;  // up to here, double represents every integer

template <class T>
T load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

int64_t signed_at(const uint8_t* bytes, int64_t width) {
  switch (width) {
    case 1:
      return load<int8_t>(bytes);
    case 2:
      return load<int16_t>(bytes);
    case 4:
      return load<int32_t>(bytes);
    default:
      return load<int64_t>(bytes);
  }
}

uint64_t unsigned_at(const uint8_t* bytes, int64_t width) {
  switch (width) {
    case 1:
      return load<uint8_t>(bytes);
    case 2:
      return load<uint16_t>(bytes);
    case 4:
      return load<uint32_t>(bytes);
    default:
      return load<uint64_t>(bytes);
  }
}

double floating_at(const uint8_t* bytes, int64_t width) {
  switch (width) {
    case 2:
      return kernels::to_accum(load<kernels::Fp16>(bytes));
    case 4:
      return load<float>(bytes);
    default:
      return load<double>(bytes);
  }
}

}  // namespace

static_assert(std::endian::native == std::endian::little, "elements are used as they lie");

void Array::fail(const std::string& why) const { Source{name, {}}.fail(why); }

std::string Array::shape_text() const {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::vector<double> Array::doubles() const {
  if (!is_number()) fail("expected numbers, got strings");
  std::vector<double> numbers(count());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint8_t* element = data.data() + i * width;
    switch (kind) {
      case ElementKind::floating:
        numbers[i] = floating_at(element, width);
        break;
      case ElementKind::signed_integer:
        numbers[i] = static_cast<double>(signed_at(element, width));
        break;
      default:
        numbers[i] = static_cast<double>(unsigned_at(element, width));
    }
  }
  return numbers;
}

std::vector<int64_t> Array::integers() const {
  if (!is_number()) fail("expected integers, got strings");
  std::vector<int64_t> numbers(count());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint8_t* element = data.data() + i * width;
    const auto place = [&] { return " at element " + std::to_string(i); };
    if (kind == ElementKind::floating) {
      const double number = floating_at(element, width);
      if (!(std::abs(number) <= kLargestExact) || number != std::trunc(number)) {
        fail("expected integers, got " + std::to_string(number) + place());
      }
      numbers[i] = static_cast<int64_t>(number);
    } else if (kind == ElementKind::signed_integer) {
      numbers[i] = signed_at(element, width);
    } else {
      const uint64_t number = unsigned_at(element, width);
      if (number > INT64_MAX) {
        fail("expected integers of 64 bits with sign, got " + std::to_string(number) + place());
      }
      numbers[i] = static_cast<int64_t>(number);
    }
  }
  return numbers;
}

std::vector<std::string> Array::strings() const {
  if (is_number()) fail("expected strings, got numbers");
  std::vector<std::string> texts(count());
  for (size_t i = 0; i < texts.size(); ++i) {
    const uint8_t* element = data.data() + i * width;
    std::string& text = texts[i];
    if (kind == ElementKind::bytes) {
      text.assign(reinterpret_cast<const char*>(element), width);
    } else {
      for (int64_t at = 0; at < width; at += 4) {
        const auto point = load<uint32_t>(element + at);
        if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) {
          fail("element " + std::to_string(i) + " is not Unicode");
        }
        append_utf8(text, point);
      }
    }
    text.resize(text.find_last_not_of('\0') + 1);
  }
  return texts;
}

}  // namespace nsimplex::io
