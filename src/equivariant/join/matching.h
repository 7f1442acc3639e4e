#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace nsimplex::equivariant {

/// visit(matching, sign) for `match` and all partial matchings that extend it: of each input block
/// from `from` on that is not matched (-1), to an output block that nothing is matched with. The
/// sign is that of inclusion-exclusion, (-1)^(pairs added). `match` is as before afterwards.
template <class Visit>
void for_each_extension(std::vector<int8_t>& match, size_t from, int64_t output_blocks, int sign,
                        Visit&& visit) {
  if (from == match.size()) {
    visit(match, sign);
    return;
  }
  for_each_extension(match, from + 1, output_blocks, sign, visit);
  if (match[from] >= 0) return;
  for (int8_t block = 0; block < output_blocks; ++block) {
    if (std::find(match.begin(), match.end(), block) != match.end()) continue;
    match[from] = block;
    for_each_extension(match, from + 1, output_blocks, -sign, visit);
    match[from] = -1;
  }
}

/// The input blocks that a matching matches, and with which output blocks.
struct MatchedBlocks {
  std::vector<int8_t> kept, images;
};
inline MatchedBlocks matched_blocks(const std::vector<int8_t>& match) {
  MatchedBlocks blocks;
  for (size_t block = 0; block < match.size(); ++block) {
    if (match[block] < 0) continue;
    blocks.kept.push_back(static_cast<int8_t>(block));
    blocks.images.push_back(match[block]);
  }
  return blocks;
}

}  // namespace nsimplex::equivariant
