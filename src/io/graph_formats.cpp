// Parses graphs in the formats graph6 and GraphML.

#include "io/graph_formats.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "io/input_file.h"
#include "io/npy.h"
#include "io/text.h"
#include "support/printable.h"

namespace nsimplex::io {
namespace {

constexpr std::string_view kHeader = ">>graph6<<";
// Related formats: their name in a header, and the characters that begin a code.
constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
    {"sparse6", ":;"}, {"digraph6", "&"}, {"planar_code", ""}};
constexpr uint8_t kZero = 63, kLast = 126;  // a character is six bits plus 63
constexpr int kBits = 6;

std::span<const uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A number made of `characters` times six bits, the highest first.
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
  // One tilde is followed by three characters with the size, two tildes by six.
  const size_t tildes = text.starts_with("~~") ? 2 : text.starts_with("~") ? 1 : 0;
  const size_t size_characters = tildes == 0 ? 1 : 3 * tildes;
  SimpleGraph graph;
  graph.nodes = number(code, tildes, size_characters);
  const size_t begin = tildes + size_characters;
  const auto n = static_cast<uint64_t>(graph.nodes);
  // Otherwise the number of pairs would overflow, and no file is so long.
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

namespace {

constexpr std::string_view kSpace = " \t\r\n";

// A tag: <name a="b">, <name a="b"/> or </name>.
struct Tag {
  std::string_view name;  // without the prefix of a name space
  std::vector<std::pair<std::string_view, std::string>> attributes;
  bool closes = false, empty = false;

  std::string attribute(std::string_view wanted) const {
    for (const auto& [key, value] : attributes) {
      if (key == wanted) return value;
    }
    return "";
  }
};

// The tags of a text one after the other, and the text before each.
class Tags {
 public:
  Tags(const Source& source, std::string_view text) : source_(source), text_(text) {}

  // The next tag, or nothing at the end.
  std::optional<Tag> next() {
    before_.clear();
    while (true) {
      const size_t begin = text_.find('<', at_);
      if (begin == std::string_view::npos) return std::nullopt;
      before_ += plain(text_.substr(at_, begin - at_));
      at_ = begin;
      if (skip("<!--", "-->") || skip("<?", "?>")) continue;
      if (text_.substr(at_).starts_with("<![CDATA[")) {
        const size_t first = at_ + 9;
        skip("<![CDATA[", "]]>");
        before_ += text_.substr(first, at_ - 3 - first);
        continue;
      }
      if (skip("<!", ">")) continue;
      return read_tag();
    }
  }

  const std::string& before() const { return before_; }

  [[noreturn]] void fail(const std::string& why) const {
    source_.fail("line " + std::to_string(1 + count_line_ends(text_.substr(0, at_))) + ": " + why);
  }

 private:
  bool skip(std::string_view begin, std::string_view end) {
    if (!text_.substr(at_).starts_with(begin)) return false;
    const size_t found = text_.find(end, at_ + begin.size());
    if (found == std::string_view::npos) fail("not XML: no end of " + std::string(begin));
    at_ = found + end.size();
    return true;
  }

  std::string_view take(std::string_view stop) {
    const size_t end = std::min(text_.find_first_of(stop, at_), text_.size());
    const std::string_view taken = text_.substr(at_, end - at_);
    at_ = end;
    return taken;
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(kSpace, at_), text_.size()); }
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  Tag read_tag() {
    ++at_;
    Tag tag;
    tag.closes = here() == '/';
    if (tag.closes) ++at_;
    tag.name = take(" \t\r\n/>");
    tag.name.remove_prefix(tag.name.rfind(':') + 1);
    while (true) {
      skip_space();
      if (here() == '>') break;
      if (here() == '/') {
        tag.empty = true;
        ++at_;
        continue;
      }
      const std::string_view key = take(" \t\r\n=/>");
      skip_space();
      if (key.empty() || here() != '=') fail("not XML: expected an attribute and its value");
      ++at_;
      skip_space();
      const char quote = here();
      if (quote != '"' && quote != '\'') fail("not XML: expected a value in quotes");
      ++at_;
      const std::string_view value = take(std::string_view(&quote, 1));
      if (at_ == text_.size()) fail("not XML: a quote without its end");
      ++at_;
      tag.attributes.emplace_back(key, plain(value));
    }
    ++at_;
    return tag;
  }

  // The text with characters instead of entities.
  std::string plain(std::string_view text) const {
    constexpr std::pair<std::string_view, char> kNamed[] = {
        {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    std::string result;
    while (!text.empty()) {
      const size_t begin = std::min(text.find('&'), text.size());
      result += text.substr(0, begin);
      text.remove_prefix(begin);
      if (text.empty()) break;
      const size_t end = text.substr(0, 12).find(';');
      if (end == std::string_view::npos) fail("not XML: an entity without its end");
      const std::string_view entity = text.substr(1, end - 1);
      text.remove_prefix(end + 1);
      const auto named =
          std::ranges::find(kNamed, entity, [](const auto& each) { return each.first; });
      if (named != std::end(kNamed)) {
        result += named->second;
        continue;
      }
      const bool hex = entity.starts_with("#x");
      uint32_t code = 0;
      const char* last = entity.data() + entity.size();
      const auto [stop, error] =
          std::from_chars(std::min(entity.data() + (hex ? 2 : 1), last), last, code, hex ? 16 : 10);
      const bool character = code != 0 && code < 0x110000 && (code < 0xd800 || code > 0xdfff);
      if (!entity.starts_with('#') || error != std::errc() || stop != last || !character) {
        fail("an entity that is not known: " + quoted_name(entity));
      }
      append_utf8(result, code);
    }
    return result;
  }

  const Source& source_;
  std::string_view text_;
  size_t at_ = 0;
  std::string before_;
};

struct Node {
  std::string id, name;
};

struct Edge {
  std::string from, to;
  std::optional<double> weight;
};

class Reader {
 public:
  explicit Reader(const Source& source, std::string_view text)
      : source_(source), tags_(source, text) {}

  EdgeList read() {
    bool graphml = false;
    while (const auto tag = tags_.next()) {
      graphml = graphml || tag->name == "graphml";
      if (tag->closes) {
        close(*tag);
      } else {
        open(*tag);
        if (tag->empty) close(*tag);
      }
    }
    if (!graphml) source_.fail("an XML file without a graphml element");
    if (edges_.empty()) source_.fail("holds no edges");
    return list();
  }

 private:
  void open(const Tag& tag) {
    if (tag.name == "graph") directed_ = tag.attribute("edgedefault") != "undirected";
    if (tag.name == "key") keys_[tag.attribute("id")] = tag.attribute("attr.name");
    if (tag.name == "node") {
      nodes_.push_back({tag.attribute("id"), tag.attribute("id")});
      of_node_ = true;
      if (!numbers_.emplace(nodes_.back().id, std::ssize(nodes_) - 1).second) {
        tags_.fail("a second node " + quoted_name(nodes_.back().id));
      }
    }
    if (tag.name == "edge") {
      edges_.push_back({tag.attribute("source"), tag.attribute("target"), std::nullopt});
      of_node_ = false;
    }
    if (tag.name == "data") key_ = tag.attribute("key");
  }

  void close(const Tag& tag) {
    if (tag.name != "data") return;
    const auto found = keys_.find(key_);
    const std::string& name = found == keys_.end() ? key_ : found->second;
    const std::string& text = tags_.before();
    if (of_node_ && !nodes_.empty() && (name == "name" || name == "label")) {
      nodes_.back().name = text;
    }
    if (of_node_ || edges_.empty() || name != "weight") return;
    edges_.back().weight = parse_number(text);
    if (!edges_.back().weight) tags_.fail("expected a weight, got " + quoted_name(text));
  }

  int64_t number(const std::string& id) const {
    const auto found = numbers_.find(id);
    if (found == numbers_.end()) {
      source_.fail("an edge has the node " + quoted_name(id) + ", which is not there");
    }
    return found->second;
  }

  EdgeList list() const {
    EdgeList list;
    list.nodes = std::ssize(nodes_);
    list.roles = directed_;
    std::unordered_set<std::string_view> names;
    for (const Node& node : nodes_) {
      if (!names.insert(node.name).second) source_.fail("two nodes " + quoted_name(node.name));
      list.names.push_back(node.name);
    }
    for (const Edge& edge : edges_) {
      list.edges.push_back(number(edge.from));
      list.edges.push_back(number(edge.to));
      if (edge.weight) list.weights.push_back(*edge.weight);
    }
    if (!list.weights.empty() && list.weights.size() != edges_.size()) {
      source_.fail("expected a weight of every edge, or of none");
    }
    return list;
  }

  const Source& source_;
  Tags tags_;
  std::unordered_map<std::string, std::string> keys_;
  std::unordered_map<std::string, int64_t> numbers_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::string key_;
  bool of_node_ = true, directed_ = true;
};

}  // namespace

bool is_xml(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.starts_with("<?xml") || text.starts_with("<graphml") || text.starts_with("<!");
}

EdgeList parse_graphml(const Source& source) {
  const Text text(source);
  return Reader(source, text.view()).read();
}

}  // namespace nsimplex::io
