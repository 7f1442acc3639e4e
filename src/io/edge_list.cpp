#include "io/edge_list.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "io/mapped_file.h"
#include "io/numbers.h"

namespace nsimplex::io {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBetween = " \t\r,;";
  std::vector<std::string_view> words;
  for (size_t at = line.find_first_not_of(kBetween); at != std::string_view::npos;) {
    // A quote closes where nothing of the word follows it.
    size_t end = std::min(line.find_first_of(kBetween, at), line.size());
    while (line[at] == '"' && (end == at + 1 || line[end - 1] != '"') && end < line.size()) {
      end = std::min(line.find_first_of(kBetween, end + 1), line.size());
    }
    std::string_view word = line.substr(at, end - at);
    if (word.size() >= 2 && word.front() == '"' && word.back() == '"') {
      word = word.substr(1, word.size() - 2);
    }
    words.push_back(word);
    at = line.find_first_not_of(kBetween, end);
  }
  return words;
}

// The ends of all edges as numbers, or nothing where one is a name.
bool number_nodes(const std::vector<std::string_view>& ends, EdgeList& list) {
  for (const std::string_view end : ends) {
    const auto node = parse_integer(end);
    if (!node || *node < 0 || *node == INT64_MAX) return false;
    list.edges.push_back(*node);
    list.nodes = std::max(list.nodes, *node + 1);
  }
  return true;
}

void name_nodes(const std::vector<std::string_view>& ends, EdgeList& list) {
  std::unordered_map<std::string_view, int64_t> numbers;
  list.edges.clear();
  for (const std::string_view end : ends) {
    const auto [place, added] = numbers.emplace(end, std::ssize(list.names));
    if (added) list.names.emplace_back(end);
    list.edges.push_back(place->second);
  }
  list.nodes = std::ssize(list.names);
}

}  // namespace

bool is_edge_header(std::span<const std::string_view> words) {
  const auto is_one_of = [](std::string_view word, std::initializer_list<std::string_view> names) {
    return std::ranges::any_of(names, [&](std::string_view name) {
      return std::ranges::equal(word, name, [](char a, char b) { return (a | 0x20) == b; });
    });
  };
  return words.size() >= 2 && is_one_of(words[0], {"source", "from", "node1"}) &&
         is_one_of(words[1], {"target", "to", "node2"});
}

EdgeList parse_edge_list(const Source& source) {
  EdgeList list;
  std::vector<std::string_view> ends;
  std::string_view rest = source.text();
  bool first = true;
  for (int64_t line = 1; !rest.empty(); ++line) {
    const size_t length = std::min(rest.find('\n'), rest.size());
    const std::vector<std::string_view> words = words_of(rest.substr(0, length));
    rest.remove_prefix(std::min(length + 1, rest.size()));
    if (words.empty() || words[0].starts_with('#') || words[0].starts_with('%')) continue;
    if (std::exchange(first, false) && is_edge_header(words)) continue;
    const auto fail = [&](const std::string& why) {
      source.fail("line " + std::to_string(line) + ": " + why);
    };
    const size_t expected = ends.empty() ? 0 : list.weights.empty() ? 2 : 3;
    if (words.size() < 2 || words.size() > 3 || (expected != 0 && words.size() != expected)) {
      const std::string wanted = expected == 0   ? "two nodes and perhaps a weight"
                                 : expected == 2 ? "two nodes as in the lines before"
                                                 : "two nodes and a weight as in the lines before";
      fail("expected " + wanted + ", got " + std::to_string(words.size()) + " words");
    }
    if (words.size() == 3) {
      const auto weight = parse_number(words[2]);
      if (!weight) fail("expected a weight, got " + quoted(words[2]));
      list.weights.push_back(*weight);
    }
    ends.insert(ends.end(), words.begin(), words.begin() + 2);
  }
  if (ends.empty()) source.fail("holds no edges");
  if (!number_nodes(ends, list)) name_nodes(ends, list);
  return list;
}

EdgeList read_edge_list(const std::string& path) {
  const MappedFile file(path);
  return parse_edge_list({path, file.bytes()});
}

}  // namespace nsimplex::io
