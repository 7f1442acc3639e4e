// Parses and checks the header of a safetensors file, its checksums included.

#include "io/safetensors_header.h"

#include <zlib.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <tuple>
#include <unordered_set>

#include "io/array.h"

namespace nsimplex::io {
namespace {

std::string crc(std::string_view bytes) {
  const uLong value = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(kNoChecksum);
  for (size_t i = 0; i < text.size(); ++i) text[i] = kDigits[value >> (4 * (7 - i)) & 15];
  return text;
}

// The position of the value, or npos if there is none. Inside other texts of the header its quotes
// are escaped.
size_t place_of_value(std::string_view head) {
  std::string key(1, '"');
  key.append(kHeaderChecksum).append("\":\"");
  const size_t at = head.find(key);
  if (at == std::string_view::npos || head.size() - at - key.size() < kNoChecksum.size())
    return std::string_view::npos;
  return at + key.size();
}

}  // namespace

std::string checksum(std::span<const uint8_t> bytes) {
  return crc({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void seal_header(std::string& head) {
  head.replace(place_of_value(head), kNoChecksum.size(), crc(head));
}

Seal seal_of(std::string_view head) {
  const size_t at = place_of_value(head);
  if (at == std::string_view::npos) return Seal::none;
  std::string blank(head);
  blank.replace(at, kNoChecksum.size(), kNoChecksum);
  return crc(blank) == head.substr(at, kNoChecksum.size()) ? Seal::whole : Seal::broken;
}

namespace {

using Json = nlohmann::json;

// Takes the values of the header one after the other while it is parsed. A tree of it would be many
// times as large, and nlohmann's own parser with a callback searches a parent for each of its
// children.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  HeaderReader(const Source& source, uint64_t size) : source_(source), size_(size) {}

  SafetensorsHeader header;

  bool key(string_t& name) override {
    if (skipped_ > 0) return true;
    if (place_ == Place::header) {
      if (!names_.insert(name).second) {
        source_.fail("the header names a tensor twice: " + quoted_name(name));
      }
      name_ = name;
    } else if (place_ == Place::metadata) {
      field_ = name;
      if (header.metadata.contains(field_)) source_.fail(metadata_name() + " is given twice");
    } else {
      field_ = name;
      bool* given = field_ == "dtype"          ? &has_dtype_
                    : field_ == "shape"        ? &has_shape_
                    : field_ == "data_offsets" ? &has_range_
                                               : nullptr;
      if (given != nullptr && *given) bad("has two fields " + field_);
      if (given != nullptr) *given = true;
    }
    return true;
  }

  bool start_object(std::size_t /*size*/) override {
    if (skips()) return true;
    if (place_ == Place::outside) {
      place_ = Place::header;
    } else if (place_ == Place::header) {
      place_ = name_ == kMetadata ? Place::metadata : Place::tensor;
      entry_ = {};
      entry_.name = name_;
      range_.clear();
      has_dtype_ = has_shape_ = has_range_ = false;
    } else {
      unexpected();
    }
    return true;
  }

  bool end_object() override {
    if (skipped_ > 0) {
      --skipped_;
    } else if (place_ == Place::tensor) {
      finish();
      place_ = Place::header;
    } else {
      place_ = place_ == Place::metadata ? Place::header : Place::outside;
    }
    return true;
  }

  bool start_array(std::size_t /*size*/) override {
    if (skips()) return true;
    if (place_ != Place::tensor || (field_ != "shape" && field_ != "data_offsets")) unexpected();
    place_ = field_ == "shape" ? Place::shape : Place::range;
    return true;
  }

  bool end_array() override {
    if (skipped_ > 0) {
      --skipped_;
    } else {
      place_ = Place::tensor;
    }
    return true;
  }

  bool number_unsigned(number_unsigned_t number) override {
    if (place_ == Place::shape) {
      if (number > INT64_MAX) bad("has a bad shape");
      if (entry_.shape.size() == kMostAxes) {
        bad(std::string("has more than ").append(std::to_string(kMostAxes)).append(" axes"));
      }
      entry_.shape.push_back(static_cast<int64_t>(number));
    } else if (place_ == Place::range) {
      if (range_.size() == 2) bad("has no data_offsets");
      range_.push_back(number);
    } else {
      return scalar();
    }
    return true;
  }

  bool string(string_t& text) override {
    if (skipped_ > 0) return true;
    if (place_ == Place::metadata) {
      header.metadata.emplace(field_, std::move(text));
    } else if (place_ == Place::tensor && field_ == "dtype") {
      const auto known = std::ranges::find(kSafetensorsDtypes, text, &SafetensorsDtype::name);
      if (known == kSafetensorsDtypes.end()) {
        bad("dtype " + quoted_name(text) + " is not supported");
      }
      entry_.type = known->type;
      width_ = known->width;
    } else {
      return scalar();
    }
    return true;
  }

  bool null() override { return scalar(); }
  bool boolean(bool /*value*/) override { return scalar(); }
  bool number_integer(number_integer_t /*value*/) override { return scalar(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override {
    return scalar();
  }
  bool binary(binary_t& /*value*/) override { return scalar(); }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const Json::exception& /*error*/) override {
    source_.fail("the header is not JSON");
  }

 private:
  enum class Place { outside, header, metadata, tensor, shape, range };

  [[noreturn]] void bad(const std::string& why) const {
    source_.fail("tensor " + quoted_name(name_) + ": " + why);
  }
  std::string metadata_name() const {
    return std::string(kMetadata).append(".").append(printable(field_.substr(0, 40)));
  }

  // Whether the value that begins now belongs to a field of a tensor that is not needed.
  bool skips() {
    const bool known = field_ == "dtype" || field_ == "shape" || field_ == "data_offsets";
    if (skipped_ == 0 && (place_ != Place::tensor || known)) return false;
    ++skipped_;
    return true;
  }

  // Handles a value that is not an object or array and either is not needed or was not expected
  // here.
  bool scalar() const {
    const bool known = field_ == "dtype" || field_ == "shape" || field_ == "data_offsets";
    if (skipped_ == 0 && (place_ != Place::tensor || known)) unexpected();
    return true;
  }

  [[noreturn]] void unexpected() const {
    switch (place_) {
      case Place::outside:
        source_.fail("the header is not a JSON object");
      case Place::header:
        if (name_ == kMetadata) source_.fail("__metadata__ is not an object");
        bad("is not described by an object");
      case Place::metadata:
        source_.fail(metadata_name() + " is not a string");
      case Place::shape:
        bad("has a bad shape");
      case Place::range:
        bad("has no data_offsets");
      case Place::tensor:
        break;
    }
    bad("has no " + field_);
  }

  // Checks one tensor.
  void finish() {
    if (!has_dtype_) bad("has no dtype");
    if (!has_shape_) bad("has no shape");
    if (!has_range_ || range_.size() != 2) bad("has no data_offsets");
    entry_.begin = range_[0];
    entry_.end = range_[1];
    // Strides are products of extents, also of a shape without elements.
    uint64_t size = width_;
    bool empty = false;
    for (const int64_t extent : entry_.shape) {
      empty = empty || extent == 0;
      const auto count = static_cast<uint64_t>(std::max<int64_t>(extent, 1));
      if (size > INT64_MAX / count) bad("has a shape too large");
      size *= count;
    }
    if (empty) size = 0;
    if (entry_.begin > entry_.end) bad("its data end before they begin");
    if (entry_.end > size_) {
      bad(std::string("truncated: its data end at byte ")
              .append(std::to_string(entry_.end))
              .append(" of ")
              .append(std::to_string(size_)));
    }
    if (entry_.end - entry_.begin != size) {
      bad(std::string("its shape needs ")
              .append(std::to_string(size))
              .append(" bytes, its data have ")
              .append(std::to_string(entry_.end - entry_.begin)));
    }
    header.entries.push_back(std::move(entry_));
  }

  const Source& source_;
  const uint64_t size_;  // of the data
  Place place_ = Place::outside;
  int64_t skipped_ = 0;  // open objects and arrays that are not needed
  std::unordered_set<std::string> names_;
  std::string name_, field_;
  SafetensorsEntry entry_;
  uint64_t width_ = 0;
  std::vector<uint64_t> range_;
  bool has_dtype_ = false, has_shape_ = false, has_range_ = false;
};

// Checks that the ranges of all tensors, in the order of their data, fill the file.
void check_ranges(const Source& source, const SafetensorsHeader& header, uint64_t size) {
  uint64_t filled = 0;
  for (const SafetensorsEntry& each : header.entries) {
    if (each.begin != filled) {
      source.fail("tensor " + quoted_name(each.name) + ": its data overlap or leave a hole");
    }
    filled = each.end;
  }
  if (filled != size) {
    source.fail(std::to_string(size - filled) + " bytes at the end belong to no tensor");
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(const Source& source) {
  const uint64_t bytes = source.bytes.size();
  if (bytes < kLengthBytes) {
    source.fail("not a safetensors file (" + std::to_string(bytes) + " bytes)");
  }
  const uint64_t length = source.little(0, kLengthBytes);
  if (length > kMaxHeader) {
    source.fail("not a safetensors file (header of " + std::to_string(length) + " bytes)");
  }
  if (length > bytes - kLengthBytes) {
    source.fail(std::string("truncated: the header needs ")
                    .append(std::to_string(length))
                    .append(" bytes, the file has ")
                    .append(std::to_string(bytes - kLengthBytes)));
  }
  const uint64_t data = kLengthBytes + length;
  const std::string_view text = source.text().substr(kLengthBytes, length);
  if (seal_of(source.text().substr(0, data)) == Seal::broken) {
    source.fail("damaged: the header does not fit its checksum");
  }
  HeaderReader reader(source, bytes - data);
  Json::sax_parse(text.begin(), text.end(), &reader);
  SafetensorsHeader header = std::move(reader.header);
  header.data = data;
  std::ranges::sort(header.entries, {}, [](const SafetensorsEntry& each) {
    return std::tie(each.begin, each.end, each.name);
  });
  check_ranges(source, header, bytes - data);
  return header;
}

}  // namespace nsimplex::io
