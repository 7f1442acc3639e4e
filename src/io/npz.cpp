#include "io/npz.h"

#include <algorithm>

#include "io/npy.h"

namespace nsimplex::io {
namespace {

constexpr std::string_view kSuffix = ".npy";

}  // namespace

Npz::Npz(const Source& source) : source_(source), zip_(source) {}

std::vector<std::string> Npz::names() const {
  std::vector<std::string> result;
  for (const ZipEntry& entry : zip_.entries()) {
    if (entry.name.ends_with(kSuffix)) {
      result.push_back(entry.name.substr(0, entry.name.size() - kSuffix.size()));
    }
  }
  return result;
}

std::string Npz::list_of_names() const {
  std::string result;
  for (const std::string& name : names()) result += (result.empty() ? "" : ", ") + name;
  return result.empty() ? "none" : result;
}

const ZipEntry* Npz::find(const std::string& name) const {
  const auto& entries = zip_.entries();
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const ZipEntry& entry) {
    return entry.name == name + std::string(kSuffix);
  });
  return found == entries.end() ? nullptr : &*found;
}

std::vector<uint8_t> Npz::contents(const std::string& name) const {
  const ZipEntry* entry = find(name);
  if (entry == nullptr) {
    source_.fail("expected an array " + quoted_name(name) + ", got " + list_of_names());
  }
  return zip_.contents(*entry);
}

Array Npz::read(const std::string& name) const {
  const std::vector<uint8_t> bytes = contents(name);
  return parse_npy(array_source(name, bytes));
}

Array Npz::read_matrix() const {
  std::vector<std::string> matrices;
  for (const std::string& name : names()) {
    const std::vector<uint8_t> bytes = contents(name);
    const NpyHeader header = parse_npy_header(array_source(name, bytes));
    if (header.shape.size() == 2 && !header.is_pickled()) matrices.push_back(name);
  }
  if (matrices.size() != 1) {
    source_.fail("expected one array of two dimensions, got " + std::to_string(matrices.size()) +
                 " among " + list_of_names() + (matrices.empty() ? "" : ": name one"));
  }
  return read(matrices.front());
}

}  // namespace nsimplex::io
