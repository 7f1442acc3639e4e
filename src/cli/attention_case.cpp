// The dense attention cases of `bench` and `verify`: flags, inputs and named lists.

#include "cli/attention_case.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>

#include "attention/common/attention_names.h"
#include "cli/options.h"
#include "kernels/common/attention_problem.h"
#include "nn/model_names.h"
#include "support/error.h"
#include "support/require.h"

namespace nsimplex {
namespace cli {

enum class MaskKind { none, boolean, additive };

}  // namespace cli

template <>
inline constexpr Names<cli::MaskKind, 3> kNames<cli::MaskKind>{
    {{"none", cli::MaskKind::none},
     {"boolean", cli::MaskKind::boolean},
     {"additive", cli::MaskKind::additive}}};

}  // namespace nsimplex

namespace nsimplex::cli {
namespace {

constexpr double kKeptKeys = 2.0 / 3.0;     // for --key-masks
constexpr double kKeptTuples = 3.0 / 4.0;   // for --mask boolean, and the finite share of additive
constexpr int64_t kDropoutSeed = 20250711;  // the choice of dropped tuples is part of the case

// A mask over all tuples. All heads share the additive one.
at::Tensor make_mask(const AttentionCase& shape, at::Generator& generator) {
  const MaskKind kind = parse_name<MaskKind>("--mask", shape.mask);
  std::vector<int64_t> sizes{shape.batch, kind == MaskKind::additive ? 1 : shape.heads, shape.seq};
  sizes.insert(sizes.end(), shape.keys.begin(), shape.keys.end());
  const at::Tensor kept = at::rand(sizes, generator, at::kDouble).lt(kKeptTuples);
  if (kind == MaskKind::boolean) return kept;
  return at::randn(sizes, generator, at::kDouble)
      .masked_fill(kept.logical_not(), -std::numeric_limits<double>::infinity())
      .to(scalar_type(shape.dtype));
}

at::Tensor boundaries(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> ends{0};
  for (const int64_t length : lengths) ends.push_back(ends.back() + length);
  return at::tensor(ends, at::kLong);
}

}  // namespace

AttentionInputs make_inputs(const AttentionCase& shape, uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  const auto tensor = [&](int64_t heads, int64_t length, int64_t dim) {
    const at::Tensor drawn = at::randn({shape.batch, length, heads, dim}, generator, at::kDouble)
                                 .mul_(shape.amplitude)
                                 .to(scalar_type(shape.dtype))
                                 .transpose(1, 2);
    return shape.heads_inside ? drawn : drawn.contiguous();
  };
  AttentionInputs inputs;
  inputs.query = tensor(shape.heads, shape.seq, shape.dim);
  for (const int64_t length : shape.keys) {
    inputs.keys.push_back(tensor(shape.kv_heads, length, shape.dim));
    inputs.values.push_back(tensor(shape.kv_heads, length, shape.value_dim));
  }
  inputs.grad_out = tensor(shape.heads, shape.seq, shape.value_dim);
  AttentionOptions& options = inputs.options;
  options.causal = shape.causal;
  for (const int64_t left : shape.window) {
    options.window.push_back(left < 0 ? Window{} : Window::last(left));
  }
  options.form = parse_name<Form>("--form", shape.form);
  options.reduce = parse_name<Reduce>("--reduce", shape.reduce);
  options.normalizer = parse_name<Normalizer>("--normalizer", shape.normalizer);
  options.distinct = parse_name<Distinct>("--distinct", shape.distinct);
  options.scale = parse_name<ScalePreset>("--scale", shape.scale) == ScalePreset::standard
                      ? Scale::standard(shape.dim)
                      : Scale::unit(shape.order, shape.dim, shape.value_dim, options.reduce);
  if (!shape.key_lengths.empty()) options.key_lengths = at::tensor(shape.key_lengths, at::kLong);
  if (!shape.documents.empty()) options.cu_seqlens = boundaries(shape.documents);
  for (size_t m = 0; shape.key_masks && m < shape.keys.size(); ++m) {
    options.key_masks.push_back(
        at::rand({shape.batch, shape.keys[m]}, generator, at::kDouble).lt(kKeptKeys));
  }
  if (shape.mask != name_of(MaskKind::none)) options.mask = make_mask(shape, generator);
  if (options.normalizer == Normalizer::softmax_sink) {
    options.sink = at::randn({shape.heads}, generator, at::kDouble).to(scalar_type(shape.dtype));
  }
  if (shape.softcap > 0) options.softcap = shape.softcap;
  options.dropout_p = shape.dropout;
  if (shape.dropout > 0) options.seed = kDropoutSeed;
  return inputs;
}

at::ScalarType scalar_type(const std::string& dtype) {
  if (const auto known = find_name<at::ScalarType>(dtype)) return *known;
  throw InputError(
      fmt::format("--dtype: unknown dtype '{}'; use float32, float64, bfloat16 or float16", dtype));
}

CLI::Option* add_dtype_flag(CLI::App& command, std::string& dtype) {
  CLI::Option* const option = command.add_option(
      "--dtype", dtype, "Type of numbers: float32, float64, bfloat16 or float16");
  return offer(option, {"float32", "float64", "bfloat16", "float16"});
}

void add_attention_flags(CLI::App& command, AttentionCase& shape) {
  const auto shown = [](CLI::Option* option) { option->capture_default_str()->group("Shape"); };
  const auto hidden_default = [](CLI::Option* option) { option->group("Shape"); };
  shown(command.add_option("--order", shape.order, "Key axes N; 1 is ordinary attention"));
  shown(command.add_option("--batch", shape.batch, "Batch entries"));
  shown(command.add_option("--heads", shape.heads, "Query heads"));
  shown(command.add_option("--kv-heads", shape.kv_heads, "Key/value heads; 0: as --heads"));
  shown(command.add_option("--seq", shape.seq, "Queries, and keys on every axis"));
  shown(command.add_option("--width", shape.dim, "Channels of queries and keys"));
  shown(command.add_option("--value-width", shape.value_dim, "Channels of values; 0: as --width"));
  hidden_default(
      command.add_option("--keys", shape.keys, "Keys of each axis, if they differ from --seq")
          ->delimiter(','));
  hidden_default(
      command
          .add_option(
              "--window", shape.window,
              "How many of the last keys a query sees: one number, or one per axis; -1: all")
          ->delimiter(','));
  hidden_default(
      command
          .add_option("--key-lengths", shape.key_lengths, "Number of valid keys per batch entry")
          ->delimiter(','));
  command
      .add_flag("--causal,!--no-causal", shape.causal,
                "Mask the keys after the query's own position")
      ->group("Shape");
  shown(
      offer(command.add_option("--form", shape.form, "Form of the scores: product or determinant"),
            names_of<Form>()));
  shown(offer(command.add_option("--reduce", shape.reduce,
                                 "How the values of a tuple are combined: product, sum or mean"),
              names_of<Reduce>()));
  shown(
      offer(command.add_option("--normalizer", shape.normalizer,
                               "Normaliser: softmax, softmax_sink (random sinks), sigmoid or relu"),
            names_of<Normalizer>()));
  shown(
      offer(command.add_option("--distinct", shape.distinct,
                               "Leave out tuples that repeat a position: none, axes or with_query"),
            names_of<Distinct>()));
  hidden_default(command.add_option("--documents", shape.documents, "Lengths of packed documents")
                     ->delimiter(','));
  command.add_flag("--key-masks", shape.key_masks, "Mask a third of the keys on every axis")
      ->group("Shape");
  shown(offer(
      command.add_option("--mask", shape.mask, "Random mask over tuples: none, boolean, additive"),
      names_of<MaskKind>()));
  shown(command.add_option("--softcap", shape.softcap,
                           "Cap c of the logits, c tanh(x / c); 0: none"));
  shown(command.add_option("--dropout", shape.dropout, "Share of the tuples that is dropped"));
  shown(offer(command.add_option("--scale", shape.scale, "Scale of the logits: standard or unit"),
              names_of<ScalePreset>()));
  shown(add_dtype_flag(command, shape.dtype));
  shown(command.add_option("--amplitude", shape.amplitude, "Standard deviation of the inputs"));
  command
      .add_flag("--heads-inside", shape.heads_inside, "Strided inputs: [batch, row, head, channel]")
      ->group("Shape");
}

void complete(AttentionCase& shape) {
  const int order = shape.order;
  require(order >= 1 && order <= kernels::kMaxOrder, "--order: expected 1 to ", kernels::kMaxOrder,
          ", got ", order);
  if (shape.kv_heads == 0) shape.kv_heads = shape.heads;
  if (shape.value_dim == 0) shape.value_dim = shape.dim;
  if (shape.keys.empty()) shape.keys.assign(order, shape.seq);
  if (shape.window.size() == 1) shape.window.assign(order, shape.window.front());
  require_at_least("--batch", 1, shape.batch);
  require_at_least("--heads", 1, shape.heads);
  require_at_least("--kv-heads", 1, shape.kv_heads);
  require_at_least("--seq", 1, shape.seq);
  require_at_least("--width", 1, shape.dim);
  require_at_least("--value-width", 1, shape.value_dim);
  require(shape.heads % shape.kv_heads == 0, "--kv-heads: ", shape.heads,
          " query heads cannot share ", shape.kv_heads, " key/value heads evenly");
  require(static_cast<int>(shape.keys.size()) == order, "--keys: expected ", order,
          " lengths, got ", shape.keys.size());
  for (const int64_t length : shape.keys) {
    require(length >= 0, "--keys: expected lengths of 0 or more, got ", length);
  }
  require(shape.window.empty() || static_cast<int>(shape.window.size()) == order,
          "--window: expected 1 or ", order, " entries, got ", shape.window.size());
  for (const int64_t left : shape.window) {
    require(left == -1 || left >= 1, "--window: expected at least 1, or -1 for all keys, got ",
            left);
  }
  require(
      shape.key_lengths.empty() || static_cast<int64_t>(shape.key_lengths.size()) == shape.batch,
      "--key-lengths: expected ", shape.batch, " entries (one per batch entry), got ",
      shape.key_lengths.size());
  for (const int64_t length : shape.key_lengths) {
    for (const int64_t keys : shape.keys) {
      require(length >= 0 && length <= keys, "--key-lengths: expected 0 to ", keys, ", got ",
              length);
    }
  }
  parse_name<Reduce>("--reduce", shape.reduce);
  parse_name<Normalizer>("--normalizer", shape.normalizer);
  parse_name<Distinct>("--distinct", shape.distinct);
  parse_name<MaskKind>("--mask", shape.mask);
  parse_name<ScalePreset>("--scale", shape.scale);
  require(parse_name<Form>("--form", shape.form) == Form::product || shape.dim % (order + 1) == 0,
          "--width: expected a multiple of ", order + 1, " for the determinant, got ", shape.dim);
  const int64_t packed =
      std::accumulate(shape.documents.begin(), shape.documents.end(), int64_t{0});
  require(shape.documents.empty() || packed == shape.seq,
          "--documents: expected lengths that add up to ", shape.seq, ", got ", packed);
  require(shape.softcap >= 0 && std::isfinite(shape.softcap), "--softcap: expected 0 or more, got ",
          shape.softcap);
  require(shape.dropout >= 0 && shape.dropout < 1, "--dropout: expected 0 to below 1, got ",
          shape.dropout);
  shape.dtype = name_of(scalar_type(shape.dtype));
}

// The build makes these from bench/cases/attention.txt and bench/cases/attention_speed.txt.
extern const char* const kVerificationCases;
extern const char* const kSpeedCases;

namespace {

std::vector<NamedCase> parse_cases(const char* text) {
  std::vector<NamedCase> cases;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    NamedCase named;
    if (!(words >> named.name) || named.name.front() == '#') continue;
    std::getline(words, named.flags);
    CLI::App parser;
    add_attention_flags(parser, named.shape);
    parser.parse(named.flags);
    complete(named.shape);
    cases.push_back(std::move(named));
  }
  return cases;
}

}  // namespace

std::vector<NamedCase> verification_cases() { return parse_cases(kVerificationCases); }
std::vector<NamedCase> speed_cases() { return parse_cases(kSpeedCases); }

NamedCase find_case(const std::string& name) {
  for (const auto& cases : {verification_cases(), speed_cases()}) {
    for (const NamedCase& named : cases) {
      if (named.name == name) return named;
    }
  }
  throw InputError(fmt::format("--case: expected a case of bench/cases, got '{}'", name));
}

void set_flags(CLI::App& command, const NamedCase& named) {
  CLI::App parser;
  AttentionCase unset;
  add_attention_flags(parser, unset);
  parser.parse(named.flags);
  // A case without --causal is not causal, whatever the default of the command.
  CLI::Option& causal = *parser.get_option("--causal");
  if (causal.empty()) causal.add_result("false");
  for (const CLI::Option* flag : parser.get_options()) {
    CLI::Option& own = *command.get_option(flag->get_name());
    if (flag->empty() || !own.empty()) continue;
    for (const std::string& value : flag->results()) own.add_result(value);
    own.run_callback();
  }
}

}  // namespace nsimplex::cli
