// Options of the language model: their text in files, and which go together.

#include <nsimplex/language_model.h>

#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <set>
#include <string_view>

#include "attention/common/attention_names.h"
#include "kernels/common/attention_problem.h"
#include "nn/language_options.h"
#include "nn/model_names.h"
#include "support/require.h"

namespace nsimplex {

template <>
inline constexpr Names<bool, 2> kNames<bool>{{{"true", true}, {"false", false}}};

namespace {

template <class Number>
Number parse_number(const std::string& key, std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw InputError(c10::str("[LanguageModel] ", key, ": expected a number, got '", text, "'"));
  }
  return number;
}

std::string format_number(double number) {
  // The shortest text that reads back as the same number.
  std::array<char, 32> text;
  const auto result = std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), result.ptr};
}

std::vector<std::string_view> entries_of(std::string_view text) {
  std::vector<std::string_view> entries;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    entries.push_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return entries;
}

std::vector<Window> parse_windows(const std::string& key, std::string_view text) {
  std::vector<Window> windows;
  for (const std::string_view entry : entries_of(text)) {
    const size_t colon = entry.find(':');
    require(colon != entry.npos, "[LanguageModel] ", key,
            ": expected windows as left:right,left:right, got '", entry, "'");
    windows.push_back({parse_number<int64_t>(key, entry.substr(0, colon)),
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

std::string text_of(int64_t number) { return std::to_string(number); }
std::string text_of(double number) { return format_number(number); }
std::string text_of(const std::optional<double>& number) {
  return number ? format_number(*number) : "";
}
std::string text_of(const std::vector<Window>& windows) { return format_windows(windows); }
std::string text_of(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += c10::str(text.empty() ? "" : ",", number);
  return text;
}
template <class Value>
std::string text_of(Value value) {
  return std::string(name_of(value));
}

using Key = const std::string&;
void read(Key key, Key text, int64_t& number) { number = parse_number<int64_t>(key, text); }
void read(Key key, Key text, double& number) { number = parse_number<double>(key, text); }
void read(Key key, Key text, std::optional<double>& number) {
  number.reset();
  if (!text.empty()) number = parse_number<double>(key, text);
}
void read(Key key, Key text, std::vector<Window>& windows) { windows = parse_windows(key, text); }
void read(Key key, Key text, std::vector<int64_t>& numbers) {
  numbers.clear();
  for (const std::string_view entry : entries_of(text)) {
    numbers.push_back(parse_number<int64_t>(key, entry));
  }
}
template <class Value>
void read(Key key, Key text, Value& value) {
  value = parse_name<Value>("[LanguageModel] " + key, text, {.before = "", .separator = " or "});
}

// How to write and read one field.
struct Field {
  std::string name;
  std::function<std::string(const LanguageModelOptions&)> get;
  std::function<void(LanguageModelOptions&, const std::string&)> set;
};

template <class Value>
Field field(const std::string& name, Value LanguageModelOptions::* member) {
  return {name, [=](const auto& o) { return text_of(o.*member); },
          [=](auto& o, const auto& text) { read(name, text, o.*member); }};
}

const std::vector<Field>& fields() {
#define NSIMPLEX_FIELD(type, name, ...) field(#name, &LanguageModelOptions::name),
  static const std::vector<Field> all = {NSIMPLEX_LANGUAGE_MODEL_OPTIONS(NSIMPLEX_FIELD)};
#undef NSIMPLEX_FIELD
  return all;
}

}  // namespace

std::vector<Window> default_windows(int64_t order) {
  constexpr int64_t kLong = 256, kShort = 16;
  std::vector<Window> windows(
      static_cast<size_t>(std::clamp<int64_t>(order, 1, kernels::kMaxOrder)), Window::last(kShort));
  windows.back() = Window::last(kLong);
  return windows;
}

namespace {

constexpr char kAt[] = "[LanguageModel] ";
constexpr int64_t kMostWidth = int64_t{1} << 20;

// The bounds of sizes are those of Python, too: SIZES of language_options.py.
void check_sizes(const LanguageModelOptions& o) {
  const auto within = [](const char* name, int64_t least, int64_t most, int64_t value) {
    require_within(std::string(kAt) + name, least, most, value);
  };
  constexpr int64_t kMost = int64_t{1} << 31;
  within("vocabulary", 1, kMost, o.vocabulary);
  within("layers", 1, 1 << 16, o.layers);
  within("heads", 1, kMostWidth, o.heads);
  within("kv_heads", 0, kMostWidth, o.kv_heads);
  within("dim", 1, kMostWidth, o.dim);
  within("context", 1, kMost, o.context);
  within("order", 1, kernels::kMaxOrder, o.order);
  within("every", 0, kMost, o.every);
  within("topk", 1, kMost, o.topk);
  within("sinks", 1, kMost, o.sinks);
  within("head_dim", 0, kMostWidth, o.head_dim);
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
  check_sizes(options);
  return options;
}

namespace {

void check_mlp(const LanguageModelOptions& o) {
  const double widest = o.mlp_ratio * static_cast<double>(o.dim);
  require(o.mlp_ratio >= 0 && widest <= 64.0 * static_cast<double>(kMostWidth), kAt,
          "mlp_ratio: expected 0 (the usual one) to ", 64 * kMostWidth / o.dim, ", got ",
          o.mlp_ratio);
}

// What the tuples of `sparse` cannot have, in the words of the model's own options.
void check_sparse(const LanguageModelOptions& o) {
  const std::string with = c10::str(" with sparse ", name_of(o.sparse));
  const auto values = to_map(o), usual = to_map({});
  for (const LanguageOption& option : unused_options(o)) {
    static const std::set<std::string_view> kIgnored = {"window",         "topk",         "indexer",
                                                        "indexer_scores", "indexer_loss", "scale"};
    const std::string name(option.name);
    const std::string& expected = usual.at(name);
    require(kIgnored.contains(name), kAt, name, ": expected ", expected.empty() ? "none" : expected,
            with, ", got ", values.at(name));
  }
  const bool dense = o.sparse == Sparsity::window;
  require(dense || o.normalizer == Normalizer::softmax || o.normalizer == Normalizer::softmax_sink,
          kAt, "normalizer: expected softmax or softmax_sink", with, ", got ",
          name_of(o.normalizer));
  const bool learned = o.reduce == TupleReduce::mlp || o.reduce == TupleReduce::mlp_symmetric;
  require(!dense || !learned, kAt, "reduce: expected product, sum or mean", with, ", got ",
          name_of(o.reduce));
  const bool united = has_part(o.sparse, "window") && !dense;
  require(!united || o.window.size() == 1, kAt,
          "window: expected one entry, for the keys of all axes,", with, ", got ", o.window.size());
}

void check_positions(const LanguageModelOptions& o) {
  const bool turns = o.form == Form::determinant || (o.orders.empty() && o.order == 1);
  require(!o.rotary || turns, kAt, "rotary: expected form determinant with ",
          o.orders.empty() ? c10::str("order ", o.order) : "orders",
          ", because the product form does not depend on relative positions alone");
  require(o.rotary_base > 0 && std::isfinite(o.rotary_base), kAt,
          "rotary_base: expected a positive number, got ", o.rotary_base);
}

}  // namespace

void detail::check_model(const LanguageModelOptions& o) {
  check_sizes(o);
  check_mlp(o);
  require(o.indexer_loss >= 0 && std::isfinite(o.indexer_loss), kAt,
          "indexer_loss: expected 0 or more, got ", o.indexer_loss);
  require(o.order == LanguageModelOptions().order || o.order == detail::most_axes(o), kAt,
          "order: expected none beside orders, got ", o.order);
  if (o.every > 0 && o.every <= o.layers) check_sparse(o);
  check_positions(o);
}

}  // namespace nsimplex
