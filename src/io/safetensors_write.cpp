#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "io/safetensors_format.h"

namespace nsimplex::io {
namespace {

// Data from here on suit any vector load of a reader that maps the file.
constexpr size_t kAlignment = 64;

std::string_view dtype_name(const NamedTensor& each) {
  for (const SafetensorsDtype& known : kSafetensorsDtypes) {
    if (each.tensor.scalar_type() == known.type) return known.name;
  }
  throw std::invalid_argument("safetensors cannot hold " + each.name + " of dtype " +
                              c10::toString(each.tensor.scalar_type()));
}

}  // namespace

void write_safetensors(const std::string& path, const Safetensors& contents) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& each : contents.tensors) order.push_back(&each);
  std::stable_sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return a->tensor.element_size() > b->tensor.element_size();
  });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!contents.metadata.empty()) header[std::string(kMetadata)] = contents.metadata;
  std::set<std::string> names = {std::string(kMetadata)};
  uint64_t offset = 0;
  for (const NamedTensor* each : order) {
    if (!names.insert(each->name).second) {
      throw std::invalid_argument("safetensors cannot hold two tensors called " + each->name);
    }
    const uint64_t end = offset + each->tensor.nbytes();
    header[each->name] = {{"dtype", dtype_name(*each)},
                          {"shape", each->tensor.sizes().vec()},
                          {"data_offsets", {offset, end}}};
    offset = end;
  }

  std::string text = header.dump();
  text.append((kAlignment - (kLengthBytes + text.size()) % kAlignment) % kAlignment, ' ');
  std::string length;
  for (size_t i = 0; i < kLengthBytes; ++i)
    length.push_back(static_cast<char>(text.size() >> (8 * i)));

  AtomicFile file(path);
  file.write(length);
  file.write(text);
  for (const NamedTensor* each : order) {
    const at::Tensor data = each->tensor.detach().cpu().contiguous();
    file.write(data.const_data_ptr(), data.nbytes());
  }
  file.commit();
}

}  // namespace nsimplex::io
