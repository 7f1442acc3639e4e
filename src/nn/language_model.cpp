// The language model, and the conversion of its options to text and back.

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/linear.h>
#include <nsimplex/language_model.h>

#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <string_view>

#include "attention/common/attention_names.h"
#include "kernels/common/attention_problem.h"
#include "nn/initialize.h"
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

std::vector<Window> parse_windows(const std::string& key, std::string_view text) {
  std::vector<Window> windows;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view entry = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
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

// How to write, read and check one field.
struct Field {
  std::string name;
  std::function<std::string(const LanguageModelOptions&)> get;
  std::function<void(LanguageModelOptions&, const std::string&)> set;
  std::function<void(const LanguageModelOptions&)> check = {};
};

Field number(const std::string& name, int64_t LanguageModelOptions::* member, int64_t least,
             int64_t most) {
  return {
      name, [=](const auto& o) { return std::to_string(o.*member); },
      [=](auto& o, const auto& text) { o.*member = parse_number<int64_t>(name, text); },
      [=](const auto& o) { require_within("[LanguageModel] " + name, least, most, o.*member); }};
}

Field real(const std::string& name, double LanguageModelOptions::* member) {
  return {name, [=](const auto& o) { return format_number(o.*member); },
          [=](auto& o, const auto& text) { o.*member = parse_number<double>(name, text); }};
}

template <class Value>
Field choice(const std::string& name, Value LanguageModelOptions::* member) {
  return {name, [=](const auto& o) { return std::string(name_of(o.*member)); },
          [=](auto& o, const auto& text) {
            o.*member = parse_name<Value>("[LanguageModel] " + name, text,
                                          {.before = "", .separator = " or "});
          }};
}

constexpr int64_t kMostWidth = int64_t{1} << 20;

// The bounds of sizes are those of Python, too: see LanguageModelOptions there.
const std::vector<Field>& fields() {
  using Options = LanguageModelOptions;
  constexpr int64_t kMost = int64_t{1} << 31;
  static const std::vector<Field> all = {
      number("vocabulary", &Options::vocabulary, 1, kMost),
      number("layers", &Options::layers, 1, 1 << 16),
      number("heads", &Options::heads, 1, kMostWidth),
      number("kv_heads", &Options::kv_heads, 0, kMostWidth),
      number("dim", &Options::dim, 1, kMostWidth),
      number("context", &Options::context, 1, kMost),
      number("order", &Options::order, 1, kernels::kMaxOrder),
      number("every", &Options::every, 0, kMost),
      {"window", [](const Options& o) { return format_windows(o.window); },
       [](Options& o, const std::string& text) { o.window = parse_windows("window", text); }},
      choice("sparse", &Options::sparse),
      number("topk", &Options::topk, 1, kMost),
      choice("indexer", &Options::indexer),
      choice("indexer_scores", &Options::indexer_scores),
      real("indexer_loss", &Options::indexer_loss),
      choice("norm", &Options::norm),
      choice("scale", &Options::scale),
      choice("mlp", &Options::mlp),
      real("mlp_ratio", &Options::mlp_ratio),
      choice("tied", &Options::tied),
      choice("form", &Options::form),
      choice("rotary", &Options::rotary),
      choice("normalizer", &Options::normalizer),
      choice("augment", &Options::augment),
      real("dropout", &Options::dropout),
  };
  return all;
}

void check_sizes(const LanguageModelOptions& options) {
  for (const Field& field : fields()) {
    if (field.check) field.check(options);
  }
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

constexpr double kEmbeddingDeviation = 0.02;

void check(const LanguageModelOptions& o) {
  const char* at = "[LanguageModel] ";
  check_sizes(o);
  const double widest = o.mlp_ratio * static_cast<double>(o.dim);
  require(o.mlp_ratio >= 0 && widest <= 64.0 * static_cast<double>(kMostWidth), at,
          "mlp_ratio: expected 0 (the usual one) to ", 64 * kMostWidth / o.dim, ", got ",
          o.mlp_ratio);
  require(o.indexer_loss >= 0 && std::isfinite(o.indexer_loss), at,
          "indexer_loss: expected 0 or more, got ", o.indexer_loss);
  require(!o.rotary || o.order == 1 || o.form == Form::determinant, at,
          "rotary: expected form determinant with order ", o.order,
          ", because the product form does not depend on relative positions alone");
  require(o.dropout >= 0 && o.dropout < 1, at, "dropout: expected a share in [0, 1), got ",
          o.dropout);
}

SelectionOptions selection(const LanguageModelOptions& o) {
  SelectionOptions selection;
  selection.pattern = o.sparse == Sparsity::path ? TuplePattern::path : TuplePattern::product;
  selection.keys = o.topk;
  selection.loss_weight = o.indexer_loss;
  selection.indexer.heads = o.heads;
  selection.indexer.source = o.indexer;
  selection.indexer.scores = o.indexer_scores;
  selection.indexer.rotary = o.indexer == IndexSource::light;
  return selection;
}

// The attention of one block.
SimplicialAttention make_attention(const LanguageModelOptions& o, bool simplicial) {
  SimplicialAttentionOptions attention;
  attention.dim = o.dim;
  attention.heads = o.heads;
  attention.kv_heads = o.kv_heads;
  attention.norm = o.norm;
  attention.causal = true;
  attention.order = simplicial ? o.order : 1;
  attention.rotary = attention.order == 1;
  if (!simplicial) return SimplicialAttention(attention);
  attention.scale = o.scale;
  attention.form = o.form;
  attention.rotary |= o.rotary;
  attention.normalizer = o.normalizer;
  for (int64_t axis = 1; o.augment && axis < o.order; ++axis) attention.augment.push_back(axis);
  attention.dropout = o.dropout;
  std::shared_ptr<SimplicialAttentionImpl> layer;
  switch (o.sparse) {
    case Sparsity::window:
      attention.window = o.window;
      layer = std::make_shared<SimplicialAttentionImpl>(attention);
      break;
    case Sparsity::topk:
    case Sparsity::path:
      layer = std::make_shared<SparseAttentionImpl>(attention, selection(o));
      break;
    case Sparsity::linear:
      layer = std::make_shared<SeparableAttentionImpl>(attention);
      break;
  }
  return SimplicialAttention(layer);
}

}  // namespace

LanguageModelImpl::LanguageModelImpl(const LanguageModelOptions& options,
                                     const std::optional<at::Generator>& generator)
    : options_(options) {
  check(options_);
  const auto& o = options_;
  blocks_ = torch::nn::ModuleList();
  const FeedForwardOptions mlp{.hidden = std::llround(o.mlp_ratio * static_cast<double>(o.dim)),
                               .activation = o.mlp};
  for (int64_t layer = 1; layer <= o.layers; ++layer) {
    const bool simplicial = o.every > 0 && layer % o.every == 0;
    SimplicialAttention attention = make_attention(o, simplicial);
    const auto sparse = std::dynamic_pointer_cast<SparseAttentionImpl>(attention.ptr());
    if (sparse && o.indexer == IndexSource::reuse) {
      require(layer > 1,
              "[LanguageModel] indexer: reuse scores the pairs of the layer before, and the first "
              "layer has none; use light, or every of at least 2");
      sparse->set_source(blocks_->at<TransformerBlockImpl>(layer - 2).attention().ptr());
    }
    blocks_->push_back(TransformerBlock(std::move(attention), mlp));
  }
  embedding_ = register_module("embedding", torch::nn::Embedding(o.vocabulary, o.dim));
  register_module("blocks", blocks_);
  norm_ = register_module("norm", RMSNorm(o.dim));
  if (!o.tied) {
    head_ = register_module(
        "head", torch::nn::Linear(torch::nn::LinearOptions(o.dim, o.vocabulary).bias(false)));
  }
  reset_parameters(generator);
}

void LanguageModelImpl::reset_parameters(const std::optional<at::Generator>& generator) {
  const at::NoGradGuard no_grad;
  embedding_->weight.normal_(0.0, kEmbeddingDeviation, generator);
  const double branches = 2.0 * static_cast<double>(options_.layers);
  const Initialization init{generator, 1.0 / std::sqrt(branches)};
  for (size_t i = 0; i < blocks_->size(); ++i) {
    blocks_->at<TransformerBlockImpl>(i).reset_parameters(init);
  }
  norm_->reset_parameters();
  if (head_) head_->weight.normal_(0.0, kEmbeddingDeviation, generator);
}

at::Tensor LanguageModelImpl::forward(const at::Tensor& tokens) { return run(tokens, nullptr); }

at::Tensor LanguageModelImpl::forward(const at::Tensor& tokens, LayerCaches& caches) {
  TORCH_CHECK(caches.size() == options_.layers, "[LanguageModel] caches: expected one for each of ",
              options_.layers, " layers, got ", caches.size());
  return run(tokens, &caches);
}

LayerCaches LanguageModelImpl::make_cache(std::optional<int64_t> unbounded) const {
  std::vector<std::shared_ptr<LayerCache>> layers;
  for (size_t i = 0; i < blocks_->size(); ++i) {
    const auto& block = blocks_->at<TransformerBlockImpl>(i);
    layers.push_back(block.make_cache(unbounded.value_or(options_.context)));
  }
  return LayerCaches(std::move(layers));
}

at::Tensor LanguageModelImpl::embed(const at::Tensor& tokens) {
  TORCH_CHECK(tokens.dim() == 2 && at::isIntegralType(tokens.scalar_type(), /*includeBool=*/false),
              "[LanguageModel] tokens: expected integers of shape [B, T], got ",
              tokens.scalar_type(), " of shape ", tokens.sizes());
  return embedding_->forward(tokens);
}

std::vector<at::Tensor> LanguageModelImpl::hidden_states(const at::Tensor& tokens) {
  std::vector<at::Tensor> states{embed(tokens)};
  for (size_t i = 0; i < blocks_->size(); ++i) {
    states.push_back(blocks_->at<TransformerBlockImpl>(i).forward(states.back()));
  }
  return states;
}

TransformerBlock LanguageModelImpl::block(int64_t index) const {
  TORCH_CHECK(index >= 0 && index < options_.layers, "[LanguageModel] block: expected 0 to ",
              options_.layers - 1, ", got ", index);
  return TransformerBlock(blocks_->ptr<TransformerBlockImpl>(static_cast<size_t>(index)));
}

at::Tensor LanguageModelImpl::run(const at::Tensor& tokens, LayerCaches* caches) {
  at::Tensor x = embed(tokens);
  for (size_t i = 0; i < blocks_->size(); ++i) {
    auto& block = blocks_->at<TransformerBlockImpl>(i);
    x = caches ? block.forward(x, (*caches)[static_cast<int64_t>(i)]) : block.forward(x);
  }
  return at::linear(norm_->forward(x), head_ ? head_->weight : embedding_->weight);
}

at::Tensor LanguageModelImpl::loss(const at::Tensor& tokens, const at::Tensor& targets) {
  TORCH_CHECK(targets.sizes() == tokens.sizes(), "[LanguageModel] targets: expected shape ",
              tokens.sizes(), ", got ", targets.sizes());
  at::Tensor logits = forward(tokens).flatten(0, 1);
  if (logits.scalar_type() != at::kDouble) logits = logits.to(at::kFloat);
  at::Tensor loss = at::cross_entropy_loss(logits, targets.flatten());
  if (!at::GradMode::is_enabled()) return loss;
  const at::Tensor auxiliary = auxiliary_loss();
  return auxiliary.defined() ? loss + auxiliary : loss;
}

std::vector<std::shared_ptr<SparseAttentionImpl>> LanguageModelImpl::choosing_layers() const {
  std::vector<std::shared_ptr<SparseAttentionImpl>> layers;
  for (size_t i = 0; i < blocks_->size(); ++i) {
    const auto attention = blocks_->at<TransformerBlockImpl>(i).attention().ptr();
    if (const auto sparse = std::dynamic_pointer_cast<SparseAttentionImpl>(attention)) {
      layers.push_back(sparse);
    }
  }
  return layers;
}

at::Tensor LanguageModelImpl::auxiliary_loss() const {
  at::Tensor sum;
  for (const auto& layer : choosing_layers()) {
    const at::Tensor& loss = layer->auxiliary_loss();
    if (loss.defined()) sum = sum.defined() ? sum + loss : loss;
  }
  return sum;
}

void LanguageModelImpl::set_warm_up(bool warms_up) {
  for (const auto& layer : choosing_layers()) layer->set_warm_up(warms_up);
}

std::vector<double> LanguageModelImpl::retained_mass(const at::Tensor& tokens) {
  const at::NoGradGuard no_grad;
  const auto layers = choosing_layers();
  for (const auto& layer : layers) layer->measure_retained_mass(true);
  forward(tokens);
  std::vector<double> masses;
  for (const auto& layer : layers) {
    layer->measure_retained_mass(false);
    masses.push_back(layer->retained_mass().item<double>());
  }
  return masses;
}

}  // namespace nsimplex
