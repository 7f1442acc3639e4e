#include "graph/delaunay.h"

#include <cstring>
#include <vector>

#include "fuzz/fuzz.h"

using namespace nsimplex::graph;

// Points of two bytes a coordinate, so that many are on lines and circles; the first byte scales
// them, so that others lie next to one another.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMost = 300;
  if (size < 1) return 0;
  const int shift = data[0] % 7;
  std::vector<GridPoint> points;
  for (size_t at = 1; at + 4 <= size && points.size() < kMost; at += 4) {
    uint16_t place[2];
    std::memcpy(place, data + at, sizeof place);
    points.push_back({place[0] << shift, place[1] << shift});
  }
  if (find_coincidence(points).first >= 0) return 0;
  const std::vector<int64_t> edges = delaunay_edges(points);
  for (size_t at = 0; at < edges.size(); at += 2) {
    if (edges[at] >= edges[at + 1]) __builtin_trap();
  }
  return 0;
}
