// Reads and writes safetensors files with checksums.

#include "io/safetensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <stdexcept>

#include "io/input_file.h"
#include "io/output_file.h"
#include "io/safetensors_header.h"
#include "support/parallel.h"

namespace nsimplex::io {
namespace {

at::Tensor view(const Source& source, const std::shared_ptr<FileBytes>& file, uint64_t begin,
                const SafetensorsEntry& entry) {
  const c10::ScalarType type = scalar_type(entry.type);
  const auto options = at::TensorOptions(type);
  const size_t size = entry.end - entry.begin;
  if (size == 0) return at::empty(entry.shape, options);
  uint8_t* data = file->bytes().data() + begin + entry.begin;
  if (type == c10::ScalarType::Bool &&
      std::any_of(data, data + size, [](uint8_t byte) { return byte > 1; })) {
    source.fail("tensor " + quoted_name(entry.name) + ": holds values that are not booleans");
  }
  // Other writers need not align; a misaligned tensor is copied.
  if (reinterpret_cast<uintptr_t>(data) % c10::elementSize(type) != 0) {
    at::Tensor copy = at::empty(entry.shape, options);
    std::memcpy(copy.data_ptr(), data, size);
    return copy;
  }
  return at::from_blob(data, entry.shape, [file](void*) {}, options);
}

// Compares the data with the checksums and removes these from the metadata. Returns false if there
// are none.
bool check_data(const Source& source, SafetensorsHeader& header) {
  const auto found = header.metadata.extract(std::string(kTensorChecksums));
  const bool sealed = !header.metadata.extract(std::string(kHeaderChecksum)).empty();
  if (found.empty() == sealed) {
    source.fail("damaged: it has checksums of the header or of the tensors alone");
  }
  if (!sealed) return false;
  const auto& entries = header.entries;
  const auto checksums = nlohmann::json::parse(found.mapped(), nullptr, /*allow_exceptions=*/false);
  if (!checksums.is_object() || checksums.size() != entries.size()) {
    source.fail("damaged: its checksums are not those of its tensors");
  }
  std::vector<char> whole(entries.size());
  parallel_tasks(std::ssize(entries), [&](int64_t task, int) {
    const SafetensorsEntry& each = entries[static_cast<size_t>(task)];
    const auto expected = checksums.find(each.name);
    whole[static_cast<size_t>(task)] =
        expected != checksums.end() && expected->is_string() &&
        expected->get_ref<const std::string&>() ==
            checksum(source.part(header.data + each.begin, each.end - each.begin));
  });
  for (size_t e = 0; e < entries.size(); ++e) {
    if (!whole[e]) {
      source.fail("damaged: tensor " + quoted_name(entries[e].name) + " does not fit its checksum");
    }
  }
  return true;
}

}  // namespace

Safetensors read_safetensors(const std::string& path) {
  const auto file = std::make_shared<FileBytes>(path);
  const Source source{path, file->bytes()};
  SafetensorsHeader header = parse_safetensors_header(source);
  Safetensors contents;
  contents.checked = check_data(source, header);
  contents.metadata = std::move(header.metadata);
  for (SafetensorsEntry& each : header.entries) {
    at::Tensor tensor = view(source, file, header.data, each);
    contents.tensors.push_back({std::move(each.name), std::move(tensor)});
  }
  return contents;
}

const at::Tensor* Safetensors::find(const std::string& name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const NamedTensor& each) { return each.name == name; });
  return found == tensors.end() ? nullptr : &found->tensor;
}

namespace {

// The data start at a multiple of this, which suits any vector load of a reader that maps the file.
constexpr size_t kAlignment = 64;

std::string_view dtype_name(const NamedTensor& each) {
  for (const SafetensorsDtype& known : kSafetensorsDtypes) {
    if (each.tensor.scalar_type() == scalar_type(known.type)) return known.name;
  }
  throw std::invalid_argument("safetensors cannot hold " + each.name + " of dtype " +
                              c10::toString(each.tensor.scalar_type()));
}

// The bytes in the order of the file.
at::Tensor data_of(const NamedTensor& each) { return each.tensor.detach().cpu().contiguous(); }

std::string checksum_of(const at::Tensor& data) {
  return checksum({static_cast<const uint8_t*>(data.const_data_ptr()), data.nbytes()});
}

}  // namespace

void write_safetensors(const std::string& path, const Safetensors& contents) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& each : contents.tensors) order.push_back(&each);
  std::stable_sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return a->tensor.element_size() > b->tensor.element_size();
  });

  // Field by field, because an ordered object of nlohmann's searches all its fields for each new
  // one.
  std::string tensors;
  const auto field = [](const std::string& name, const nlohmann::ordered_json& value) {
    return nlohmann::ordered_json(name).dump().append(":").append(value.dump());
  };
  nlohmann::json checksums = nlohmann::json::object();
  std::set<std::string> names = {std::string(kMetadata)};
  uint64_t offset = 0;
  for (const NamedTensor* each : order) {
    if (!names.insert(each->name).second) {
      throw std::invalid_argument("safetensors cannot hold two tensors called " + each->name);
    }
    const uint64_t end = offset + each->tensor.nbytes();
    tensors.append(",").append(field(each->name, {{"dtype", dtype_name(*each)},
                                                  {"shape", each->tensor.sizes().vec()},
                                                  {"data_offsets", {offset, end}}}));
    offset = end;
    checksums[each->name] = checksum_of(data_of(*each));
  }
  std::map<std::string, std::string> metadata = contents.metadata;
  metadata[std::string(kTensorChecksums)] = checksums.dump();
  metadata[std::string(kHeaderChecksum)] = kNoChecksum;

  std::string text(1, '{');
  text.append(field(std::string(kMetadata), metadata)).append(tensors).append("}");
  text.append((kAlignment - (kLengthBytes + text.size()) % kAlignment) % kAlignment, ' ');
  std::string head;
  for (size_t i = 0; i < kLengthBytes; ++i)
    head.push_back(static_cast<char>(text.size() >> (8 * i)));
  head += text;
  seal_header(head);

  AtomicFile file(path);
  file.write(head);
  for (const NamedTensor* each : order) {
    const at::Tensor data = data_of(*each);
    file.write(data.const_data_ptr(), data.nbytes());
  }
  file.commit();
}

}  // namespace nsimplex::io
