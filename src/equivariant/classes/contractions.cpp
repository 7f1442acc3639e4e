#include "equivariant/classes/contractions.h"

namespace nsimplex::equivariant {

std::map<Contraction, std::vector<ContractionUse>> contractions_of(
    std::span<const Partition> diagrams, int64_t inputs) {
  std::map<Contraction, std::vector<ContractionUse>> result;
  for (size_t d = 0; d < diagrams.size(); ++d) {
    const SplitClass parts = split(diagrams[d], inputs);
    Contraction contraction{parts.input, {}};
    ContractionUse use{static_cast<int64_t>(d), parts.output, {}};
    for (int8_t block = 0; block < static_cast<int8_t>(parts.match.size()); ++block) {
      if (parts.match[block] < 0) continue;
      contraction.kept.push_back(block);
      use.images.push_back(parts.match[block]);
    }
    result[contraction].push_back(std::move(use));
  }
  return result;
}

}  // namespace nsimplex::equivariant
