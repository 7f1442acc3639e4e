#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "io/safetensors_checksums.h"
#include "io/safetensors_torch.h"

namespace nsimplex::io {
namespace {

// Data from here on suit any vector load of a reader that maps the file.
constexpr size_t kAlignment = 64;

std::string_view dtype_name(const NamedTensor& each) {
  for (const SafetensorsDtype& known : kSafetensorsDtypes) {
    if (each.tensor.scalar_type() == scalar_type(known.type)) return known.name;
  }
  throw std::invalid_argument("safetensors cannot hold " + each.name + " of dtype " +
                              c10::toString(each.tensor.scalar_type()));
}

// The bytes as they lie in the file.
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

  // Field by field: an ordered object of nlohmann's looks through all it has for each that comes.
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
