#include "io/graph6.h"

#include <utility>

#include "io/file_bytes.h"
#include "io/npy.h"
#include "io/text.h"

namespace nsimplex::io {
namespace {

constexpr std::string_view kHeader = ">>graph6<<";
// Formats of the same family: their name in a header, and the characters that a code begins with.
constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
    {"sparse6", ":;"}, {"digraph6", "&"}, {"planar_code", ""}};
constexpr uint8_t kZero = 63, kLast = 126;  // a character is six bits plus 63
constexpr int kBits = 6;

std::span<const uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A number of `characters` times six bits, the highest first.
int64_t number(const Source& code, size_t begin, size_t characters) {
  int64_t result = 0;
  for (const uint8_t letter : code.part(begin, characters)) {
    result = result << kBits | (letter - kZero);
  }
  return result;
}

}  // namespace

SimpleGraph parse_graph6(const Source& source) {
  std::string_view text = source.text();
  if (text.starts_with(kHeader)) text.remove_prefix(kHeader.size());
  const Source code{source.name, as_bytes(text)};
  if (text.empty()) code.fail("an empty graph6 code");
  for (const auto& [format, sign] : kOthers) {
    if (text.starts_with(">>" + std::string(format)) ||
        sign.find(text[0]) != std::string_view::npos) {
      code.fail(std::string(format) + " is not supported, only graph6");
    }
  }
  for (const uint8_t letter : code.bytes) {
    if (letter < kZero || letter > kLast) {
      code.fail("not graph6: it holds " + quoted_name({reinterpret_cast<const char*>(&letter), 1}));
    }
  }
  // A tilde says that three characters with the size follow, two that six do.
  const size_t tildes = text.starts_with("~~") ? 2 : text.starts_with("~") ? 1 : 0;
  const size_t size_characters = tildes == 0 ? 1 : 3 * tildes;
  SimpleGraph graph;
  graph.nodes = number(code, tildes, size_characters);
  const size_t begin = tildes + size_characters;
  const auto n = static_cast<uint64_t>(graph.nodes);
  // Else the number of pairs would not fit, and no file is so long.
  if (n >> 32 != 0) code.fail("graph6 of " + std::to_string(n) + " nodes is truncated");
  const uint64_t pairs = n == 0 ? 0 : n * (n - 1) / 2;
  const uint64_t expected = (pairs + kBits - 1) / kBits;
  if (text.size() - begin != expected) {
    code.fail("graph6 of " + std::to_string(n) + " nodes: expected " + std::to_string(expected) +
              " characters behind the size, got " + std::to_string(text.size() - begin));
  }
  // The upper triangle, column by column: (0,1), (0,2), (1,2), (0,3), ..
  int64_t i = 0, j = 1;
  for (size_t at = begin; at < text.size(); ++at) {
    const int bits = code.bytes[at] - kZero;
    for (int bit = kBits - 1; bit >= 0; --bit) {
      const bool edge = bits >> bit & 1;
      if (j >= graph.nodes) {
        if (edge) code.fail("not graph6: bits are set behind the last pair of nodes");
        continue;
      }
      if (edge) graph.edges.insert(graph.edges.end(), {i, j});
      if (++i == j) {
        i = 0;
        ++j;
      }
    }
  }
  return graph;
}

std::vector<SimpleGraph> parse_graphs(const Source& source) {
  std::vector<SimpleGraph> graphs;
  if (source.starts_with(kNpyMagic)) {
    const std::vector<std::string> codes = parse_npy(source).strings();
    for (size_t i = 0; i < codes.size(); ++i) {
      graphs.push_back(
          parse_graph6(source.inner("element " + std::to_string(i), as_bytes(codes[i]))));
    }
    return graphs;
  }
  const Text text(source);
  std::string_view rest = text.view();
  for (int64_t line = 1; !rest.empty(); ++line) {
    const std::string_view code = take_line(rest);
    if (code.empty()) continue;
    graphs.push_back(parse_graph6(source.inner("line " + std::to_string(line), as_bytes(code))));
  }
  if (graphs.empty()) source.fail("holds no graph");
  return graphs;
}

std::vector<SimpleGraph> read_graphs(const std::string& path) {
  const FileBytes file(path);
  return parse_graphs({path, file.bytes()});
}

}  // namespace nsimplex::io
