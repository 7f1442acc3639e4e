#include "io/npz.h"

#include <algorithm>

namespace nsimplex::io {
namespace {

constexpr std::string_view kSuffix = ".npy";

// A name in a list: short, since there may be many.
std::string shown(std::string_view name) {
  constexpr size_t kMost = 40;
  return name.size() <= kMost ? printable(name) : quoted_name(name);
}

}  // namespace

Npz::Npz(const Source& source) : source_(source), zip_(source) {
  for (const ZipEntry& entry : zip_.entries()) {
    if (!entry.name.ends_with(kSuffix)) continue;
    names_.push_back(entry.name.substr(0, entry.name.size() - kSuffix.size()));
    by_name_.emplace(names_.back(), &entry);
  }
}

std::string Npz::list_of_names() const {
  constexpr size_t kMost = 10;
  std::string result;
  for (size_t at = 0; at < std::min(names_.size(), kMost); ++at) {
    result.append(at == 0 ? "" : ", ").append(shown(names_[at]));
  }
  if (names_.size() > kMost) {
    result.append(" and ").append(std::to_string(names_.size() - kMost)).append(" more");
  }
  return result.empty() ? "none" : result;
}

const ZipEntry& Npz::entry(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    source_.fail("expected an array " + quoted_name(name) + ", got " + list_of_names());
  }
  return *found->second;
}

NpyHeader Npz::header(const std::string& name) const {
  const std::vector<uint8_t> bytes = zip_.beginning(entry(name), kHeaderEnd);
  return parse_npy_header(array_source(name, bytes));
}

Array Npz::read(const std::string& name) const {
  const ZipEntry& packed = entry(name);
  check_npy(array_source(name, {}), header(name), packed.size);
  const std::vector<uint8_t> bytes = zip_.contents(packed);
  return parse_npy(array_source(name, bytes));
}

Array Npz::read_matrix() const {
  std::vector<std::string> matrices;
  for (const std::string& name : names_) {
    const NpyHeader facts = header(name);
    if (facts.shape.size() == 2 && !facts.is_pickled()) matrices.push_back(name);
  }
  if (matrices.size() != 1) {
    source_.fail("expected one array of two dimensions, got " + std::to_string(matrices.size()) +
                 " among " + list_of_names() + (matrices.empty() ? "" : ": name one"));
  }
  return read(matrices.front());
}

}  // namespace nsimplex::io
