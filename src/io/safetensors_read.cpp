#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "io/file_bytes.h"
#include "io/safetensors.h"
#include "io/safetensors_checksums.h"
#include "io/safetensors_header.h"
#include "io/safetensors_torch.h"
#include "io/source.h"
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

// Compares the data with the checksums, which are taken out of the metadata; false where there are none.
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

}  // namespace nsimplex::io
