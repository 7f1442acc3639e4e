#include <nsimplex/language_model.h>

#include <array>
#include <charconv>
#include <functional>
#include <string_view>

#include "models/options_check.h"

namespace nsimplex {
namespace {

using detail::require;

template <class Enum>
using Names = std::vector<std::pair<std::string_view, Enum>>;

const Names<HeadNorm> kHeadNorms = {
    {"none", HeadNorm::none}, {"qk", HeadNorm::qk}, {"qkv", HeadNorm::qkv}};
const Names<ScalePreset> kScalePresets = {{"standard", ScalePreset::standard},
                                          {"unit", ScalePreset::unit}};
const Names<Sparsity> kSparsities = {{"window", Sparsity::window},
                                     {"topk", Sparsity::topk},
                                     {"path", Sparsity::path},
                                     {"linear", Sparsity::linear}};
const Names<IndexSource> kIndexSources = {{"reuse", IndexSource::reuse},
                                          {"light", IndexSource::light}};
const Names<IndexScores> kIndexScores = {{"relu", IndexScores::relu},
                                         {"softmax", IndexScores::softmax}};
const Names<Activation> kActivations = {{"swiglu", Activation::swiglu}, {"gelu", Activation::gelu}};
const Names<bool> kBooleans = {{"true", true}, {"false", false}};

[[noreturn]] void fail(const std::string& key, std::string_view expected, std::string_view text) {
  throw InputError(
      c10::str("[LanguageModel] ", key, ": expected ", expected, ", got '", text, "'"));
}

template <class Number>
Number parse_number(const std::string& key, std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) fail(key, "a number", text);
  return number;
}

std::string format_number(double number) {
  // Shortest text that reads back as the same number.
  std::array<char, 32> text;
  const auto result = std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), result.ptr};
}

std::vector<Window> parse_windows(const std::string& key, std::string_view text) {
  std::vector<Window> windows;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view entry = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const size_t colon = entry.find(':');
    windows.push_back(colon == entry.npos
                          ? Window::last(parse_number<int64_t>(key, entry))
                          : Window{parse_number<int64_t>(key, entry.substr(0, colon)),
                                   parse_number<int64_t>(key, entry.substr(colon + 1))});
  }
  return windows;
}

std::string format_windows(const std::vector<Window>& windows) {
  std::string text;
  for (const Window& window : windows) {
    text += c10::str(text.empty() ? "" : ",", window.left, ":", window.right);
  }
  return text;
}

// How one field is written and read.
struct Field {
  std::string name;
  std::function<std::string(const LanguageModelOptions&)> get;
  std::function<void(LanguageModelOptions&, const std::string&)> set;
};

Field number(const std::string& name, int64_t LanguageModelOptions::* member) {
  return {name, [=](const auto& o) { return std::to_string(o.*member); },
          [=](auto& o, const auto& text) { o.*member = parse_number<int64_t>(name, text); }};
}

template <class Value>
Field choice(const std::string& name, Value LanguageModelOptions::* member,
             const Names<Value>& names) {
  const auto get = [=](const LanguageModelOptions& o) -> std::string {
    for (const auto& [text, value] : names) {
      if (value == o.*member) return std::string(text);
    }
    TORCH_INTERNAL_ASSERT(false, name);
  };
  const auto set = [=](LanguageModelOptions& o, const std::string& text) {
    std::string known;
    for (const auto& [candidate, value] : names) {
      if (candidate == text) {
        o.*member = value;
        return;
      }
      known += c10::str(known.empty() ? "" : " or ", candidate);
    }
    fail(name, known, text);
  };
  return {name, get, set};
}

const std::vector<Field>& fields() {
  using Options = LanguageModelOptions;
  static const std::vector<Field> all = {
      number("vocabulary", &Options::vocabulary),
      number("layers", &Options::layers),
      number("heads", &Options::heads),
      number("kv_heads", &Options::kv_heads),
      number("dim", &Options::dim),
      number("context", &Options::context),
      number("order", &Options::order),
      number("every", &Options::every),
      {"window", [](const Options& o) { return format_windows(o.window); },
       [](Options& o, const std::string& text) { o.window = parse_windows("window", text); }},
      choice("sparse", &Options::sparse, kSparsities),
      number("topk", &Options::topk),
      choice("indexer", &Options::indexer, kIndexSources),
      choice("indexer_scores", &Options::indexer_scores, kIndexScores),
      {"indexer_loss", [](const Options& o) { return format_number(o.indexer_loss); },
       [](Options& o, const std::string& text) {
         o.indexer_loss = parse_number<double>("indexer_loss", text);
       }},
      choice("norm", &Options::norm, kHeadNorms),
      choice("scale", &Options::scale, kScalePresets),
      choice("mlp", &Options::mlp, kActivations),
      {"mlp_ratio", [](const Options& o) { return format_number(o.mlp_ratio); },
       [](Options& o, const std::string& text) {
         o.mlp_ratio = parse_number<double>("mlp_ratio", text);
       }},
      choice("tied", &Options::tied, kBooleans),
  };
  return all;
}

}  // namespace

bool LanguageModelOptions::operator==(const LanguageModelOptions& other) const {
  return to_map(*this) == to_map(other);
}

std::map<std::string, std::string> to_map(const LanguageModelOptions& options) {
  std::map<std::string, std::string> map;
  for (const Field& field : fields()) map[field.name] = field.get(options);
  return map;
}

LanguageModelOptions language_model_options(const std::map<std::string, std::string>& map) {
  LanguageModelOptions options;
  for (const auto& [key, text] : map) {
    const auto& known = fields();
    const auto field =
        std::find_if(known.begin(), known.end(), [&](const Field& f) { return f.name == key; });
    require(field != known.end(), "[LanguageModel] ", key, ": no such option");
    field->set(options, text);
  }
  return options;
}

}  // namespace nsimplex
