#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "io/file_bytes.h"
#include "io/safetensors.h"
#include "io/safetensors_checksums.h"
#include "io/safetensors_format.h"
#include "support/error.h"
#include "support/parallel.h"

namespace nsimplex::io {
namespace {

using Json = nlohmann::json;

struct Entry {
  std::string name;
  c10::ScalarType type;
  std::vector<int64_t> shape;
  uint64_t begin, end;
};

class Reader {
 public:
  explicit Reader(const std::string& path)
      : path_(path), file_(std::make_shared<FileBytes>(path)) {}

  Safetensors read() {
    const Json header = parse_header();
    Safetensors contents;
    std::vector<Entry> entries;
    for (const auto& [name, value] : header.items()) {
      if (name == kMetadata) {
        contents.metadata = metadata(value);
      } else {
        entries.push_back(entry(name, value));
      }
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    });
    check_ranges(entries);
    contents.checked = check_data(contents.metadata, entries);
    for (const Entry& each : entries) contents.tensors.push_back({each.name, view(each)});
    return contents;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw InputError("cannot read " + path_ + ": " + why);
  }

  Json parse_header() {
    const auto bytes = file_->bytes();
    if (bytes.size() < kLengthBytes) {
      fail("not a safetensors file (" + std::to_string(bytes.size()) + " bytes)");
    }
    uint64_t length = 0;
    for (size_t i = 0; i < kLengthBytes; ++i) length |= uint64_t{bytes[i]} << (8 * i);
    if (length > kMaxHeader)
      fail("not a safetensors file (header of " + std::to_string(length) + " bytes)");
    if (length > bytes.size() - kLengthBytes) {
      fail("truncated: the header needs " + std::to_string(length) + " bytes, the file has " +
           std::to_string(bytes.size() - kLengthBytes));
    }
    const auto text = bytes.subspan(kLengthBytes, length);
    data_ = bytes.subspan(kLengthBytes + length);
    head_ = {reinterpret_cast<const char*>(bytes.data()), kLengthBytes + length};
    if (seal_of(head_) == Seal::broken) fail("damaged: the header does not fit its checksum");

    // The parser keeps the last of equal keys; the format forbids them.
    std::set<std::string> names;
    bool repeated = false;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
      if (depth == 1 && event == Json::parse_event_t::key) {
        repeated |= !names.insert(value.get<std::string>()).second;
      }
      return true;
    };
    Json header;
    try {
      header = Json::parse(text.begin(), text.end(), watch);
    } catch (const Json::exception&) {
      fail("the header is not JSON");
    }
    if (!header.is_object()) fail("the header is not a JSON object");
    if (repeated) fail("the header names a tensor twice");
    return header;
  }

  std::map<std::string, std::string> metadata(const Json& value) const {
    std::map<std::string, std::string> fields;
    if (!value.is_object()) fail("__metadata__ is not an object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) fail("__metadata__." + key + " is not a string");
      fields[key] = text.get<std::string>();
    }
    return fields;
  }

  Entry entry(const std::string& name, const Json& value) const {
    const auto bad = [&](const std::string& why) { fail("tensor " + name + ": " + why); };
    if (!value.is_object()) bad("is not described by an object");
    const auto dtype = value.find("dtype"), shape = value.find("shape"),
               range = value.find("data_offsets");
    if (dtype == value.end() || !dtype->is_string()) bad("has no dtype");
    if (shape == value.end() || !shape->is_array()) bad("has no shape");
    if (range == value.end() || !range->is_array() || range->size() != 2 ||
        !(*range)[0].is_number_unsigned() || !(*range)[1].is_number_unsigned()) {
      bad("has no data_offsets");
    }
    Entry result{name, c10::ScalarType::Undefined, {}, (*range)[0], (*range)[1]};
    for (const SafetensorsDtype& known : kSafetensorsDtypes) {
      if (dtype->get_ref<const std::string&>() == known.name) result.type = known.type;
    }
    if (result.type == c10::ScalarType::Undefined) {
      bad("dtype " + dtype->get<std::string>() + " is not supported");
    }
    uint64_t size = c10::elementSize(result.type);
    for (const Json& extent : *shape) {
      constexpr uint64_t kLargest = INT64_MAX;
      if (!extent.is_number_unsigned() || extent.get<uint64_t>() > kLargest) bad("has a bad shape");
      const uint64_t count = extent;
      if (count != 0 && size > kLargest / count) bad("has a shape too large");
      size *= count;
      result.shape.push_back(static_cast<int64_t>(count));
    }
    if (result.begin > result.end) bad("its data end before they begin");
    if (result.end > data_.size()) {
      bad("truncated: its data end at byte " + std::to_string(result.end) + " of " +
          std::to_string(data_.size()));
    }
    if (result.end - result.begin != size) {
      bad("its shape needs " + std::to_string(size) + " bytes, its data have " +
          std::to_string(result.end - result.begin));
    }
    return result;
  }

  void check_ranges(const std::vector<Entry>& entries) const {
    uint64_t filled = 0;
    for (const Entry& each : entries) {
      if (each.begin != filled) fail("tensor " + each.name + ": its data overlap or leave a hole");
      filled = each.end;
    }
    if (filled != data_.size()) {
      fail(std::to_string(data_.size() - filled) + " bytes at the end belong to no tensor");
    }
  }

  // Compares the data with the checksums, which are taken out of the metadata; false where there are none.
  bool check_data(std::map<std::string, std::string>& metadata,
                  const std::vector<Entry>& entries) const {
    const auto found = metadata.extract(std::string(kTensorChecksums));
    const bool sealed = !metadata.extract(std::string(kHeaderChecksum)).empty();
    if (found.empty() != !sealed)
      fail("damaged: it has checksums of the header or of the tensors alone");
    if (found.empty()) return false;
    const Json checksums = Json::parse(found.mapped(), nullptr, /*allow_exceptions=*/false);
    if (!checksums.is_object() || checksums.size() != entries.size()) {
      fail("damaged: its checksums are not those of its tensors");
    }
    std::vector<char> whole(entries.size());
    parallel_tasks(std::ssize(entries), [&](int64_t task, int) {
      const Entry& each = entries[static_cast<size_t>(task)];
      const auto expected = checksums.find(each.name);
      whole[static_cast<size_t>(task)] =
          expected != checksums.end() && expected->is_string() &&
          expected->get_ref<const std::string&>() ==
              checksum(data_.subspan(each.begin, each.end - each.begin));
    });
    for (size_t e = 0; e < entries.size(); ++e) {
      if (!whole[e]) fail("damaged: tensor " + entries[e].name + " does not fit its checksum");
    }
    return true;
  }

  at::Tensor view(const Entry& entry) const {
    const auto options = at::TensorOptions(entry.type);
    const size_t size = entry.end - entry.begin;
    if (size == 0) return at::empty(entry.shape, options);
    uint8_t* data = data_.data() + entry.begin;
    if (entry.type == c10::ScalarType::Bool &&
        std::any_of(data, data + size, [](uint8_t byte) { return byte > 1; })) {
      fail("tensor " + entry.name + ": holds values that are not booleans");
    }
    // Other writers need not align; a misaligned tensor is copied.
    if (reinterpret_cast<uintptr_t>(data) % c10::elementSize(entry.type) != 0) {
      at::Tensor copy = at::empty(entry.shape, options);
      std::memcpy(copy.data_ptr(), data, size);
      return copy;
    }
    return at::from_blob(data, entry.shape, [file = file_](void*) {}, options);
  }

  const std::string& path_;
  std::shared_ptr<FileBytes> file_;
  std::string_view head_;  // length and header
  std::span<uint8_t> data_;
};

}  // namespace

Safetensors read_safetensors(const std::string& path) { return Reader(path).read(); }

const at::Tensor* Safetensors::find(const std::string& name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const NamedTensor& each) { return each.name == name; });
  return found == tensors.end() ? nullptr : &found->tensor;
}

}  // namespace nsimplex::io
