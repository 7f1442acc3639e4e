// Numbers the colours of a colour refinement.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

// Numbers of colours, for tests that refine colours of graphs.

namespace nsimplex::equivariant {

/// An old colour and everything that refines it. Signatures are compared in full.
using Signature = std::vector<uint64_t>;

struct SignatureHash {
  size_t operator()(const Signature& signature) const {
    size_t hash = signature.size();
    for (const uint64_t value : signature) hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
  }
};

/// Assigns a number to each different signature.
class Palette {
 public:
  int32_t colour(const Signature& signature) {
    return numbers_.try_emplace(signature, static_cast<int32_t>(numbers_.size())).first->second;
  }
  size_t size() const { return numbers_.size(); }

 private:
  std::unordered_map<Signature, int32_t, SignatureHash> numbers_;
};

constexpr uint64_t join(int32_t first, int32_t second) {
  return static_cast<uint64_t>(first) << 32 | static_cast<uint32_t>(second);
}

/// Graphs with equal multisets of colours have one number; numbers are counted in the order of
/// their first graph.
inline std::vector<int64_t> number_kinds(std::span<const std::vector<int32_t>> colours) {
  std::map<std::vector<int32_t>, int64_t> kinds;
  std::vector<int64_t> numbers;
  for (std::vector<int32_t> own : colours) {
    std::sort(own.begin(), own.end());
    numbers.push_back(
        kinds.try_emplace(std::move(own), static_cast<int64_t>(kinds.size())).first->second);
  }
  return numbers;
}

}  // namespace nsimplex::equivariant
