// `nsimplex lab sensitivity`: compares sensitivity and sharpness of attention, its first and second
// derivatives with respect to its inputs, with the bounds for its scales.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nsimplex/analysis.h>

#include <algorithm>
#include <cmath>

#include "analysis/ascent.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "io/safetensors.h"
#include "lab/experiments.h"
#include "lab/lipschitz/propositions.h"
#include "nn/model_names.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

using analysis::Statement;
using at::Tensor;
using Tensors = std::vector<Tensor>;

const std::string kUnitNorms = "1:1:1";

struct SensitivityCommand : CommonOptions {
  std::vector<int64_t> orders{1, 2}, dims{4, 16};
  std::vector<std::string> scales{"unit", "standard"}, norms{kUnitNorms};
  // With 3 tokens the sharpness reaches only 1.784, and with fewer starts some seeds miss larger
  // values.
  int64_t tokens = 4, starts = 16, steps = 60, draws = 1000;
  bool skip_sharpness = false;
};

// Positive finite numbers separated by colons; empty for any other text.
std::vector<double> numbers_of(const std::string& text) {
  std::vector<double> numbers;
  for (const std::string& part : CLI::detail::split(text, ':')) {
    double value = 0;
    if (!CLI::detail::lexical_cast(part, value) || !std::isfinite(value) || value <= 0) return {};
    numbers.push_back(value);
  }
  return numbers;
}

struct Case {
  int64_t order, dim;
  std::string scales;
  std::string norms;  // of q, of every k and of every v

  Scale scale() const {
    if (const auto preset = find_name<ScalePreset>(scales)) {
      return *preset == ScalePreset::unit ? Scale::unit(order, dim, dim, Reduce::product)
                                          : Scale::standard(dim);
    }
    const std::vector<double> numbers = numbers_of(scales);
    return {.logit = numbers[0], .output = numbers[1]};
  }
  bool unit_norms() const { return norms == kUnitNorms; }
  InputNorms input_norms() const {
    const std::vector<double> numbers = numbers_of(norms);
    const auto axes = static_cast<size_t>(order);
    return {.query = numbers[0],
            .keys = std::vector<double>(axes, numbers[1]),
            .values = std::vector<double>(axes, numbers[2])};
  }
  TensorFunction function() const {
    return [order = order, scale = scale()](const Tensors& x) {
      const at::TensorList all(x);
      AttentionOptions options;
      options.scale = scale;
      return attention(x[0], all.slice(1, order), all.slice(1 + order), options).out;
    };
  }
  std::string text() const {
    return fmt::format("order {}, D {}, {} scales{}", order, dim, scales,
                       unit_norms() ? "" : ", norms " + norms);
  }
};

// A layer: q, every k and every v are projected from one input by rotations, which keep the root
// mean square. There is one set of rotations per problem, and none for the second half.
TensorFunction layer_function(const Case& each, const SensitivityCommand& options) {
  Tensors rotations;
  for (int64_t i = 0; i < 2 * each.order + 1; ++i) {
    const Tensor drawn = at::randn({2 * options.starts, 1, each.dim, each.dim}, at::kDouble);
    Tensor rotation = std::get<0>(at::linalg_qr(drawn));
    rotation.slice(0, options.starts).copy_(at::eye(each.dim, at::kDouble));
    rotations.push_back(rotation);
  }
  return [rotations, attend = each.function()](const Tensors& x) {
    Tensors inputs;
    for (const Tensor& rotation : rotations) inputs.push_back(x[0].matmul(rotation));
    return attend(inputs);
  };
}

// The starts of the ascents, one problem each. The first half is normal. The other half has all
// keys near +-sqrt(D) e_1 and all values near +-sqrt(D) e_2, where the bounds are attained.
Tensors starts_of(const Case& each, const SensitivityCommand& options) {
  const int64_t problems = 2 * options.starts;
  Tensors inputs;
  for (int64_t i = 0; i < 2 * each.order + 1; ++i) {
    Tensor x = at::randn({problems, 1, options.tokens, each.dim}, at::kDouble);
    if (i > 0) {
      const Tensor sign = at::randn({options.starts, 1, options.tokens}, at::kDouble).sign();
      const Tensor aligned = x.slice(0, options.starts).mul_(0.01);
      aligned.select(-1, i > each.order && each.dim > 1 ? 1 : 0)
          .add_(sign, std::sqrt(static_cast<double>(each.dim)));
    }
    inputs.push_back(x);
  }
  return inputs;
}

// The fault of a pair of scales, or nothing.
std::string check_scales(const std::string& text) {
  if (find_name<ScalePreset>(text) || numbers_of(text).size() == 2) return {};
  return fmt::format("expected unit, standard or LOGIT:OUTPUT, got '{}'", text);
}

std::string check_norms(const std::string& text) {
  if (numbers_of(text).size() == 3) return {};
  return fmt::format("expected Q:K:V, three positive numbers, got '{}'", text);
}

double largest(const std::vector<double>& values) { return *std::ranges::max_element(values); }
double largest(const Tensor& values) { return values.max().item<double>(); }

class SensitivityExperiment {
 public:
  SensitivityExperiment(const SensitivityCommand& options, RunLog& log)
      : options_(options), log_(log) {}

  void measure(const Case& each) {
    const InputNorms norms = each.input_norms();
    const auto first = sensitivity_bounds(each.order, each.dim, each.dim, each.scale(), norms);
    const auto second = sharpness_bounds(each.order, each.dim, each.dim, each.scale(), norms);
    std::vector<double> rms{norms.query};
    rms.insert(rms.end(), norms.keys.begin(), norms.keys.end());
    rms.insert(rms.end(), norms.values.begin(), norms.values.end());
    const auto inputs = static_cast<double>(rms.size());
    const Subject attention{"", each.function(), starts_of(each, options_), rms};
    test(each, attention, "sensitivity", nsimplex::sensitivity, first);
    if (!options_.skip_sharpness) {
      test(each, attention, "sharpness", nsimplex::sharpness, second);
    }
    if (!each.unit_norms()) return;  // a layer's projections keep the norm of its one input
    const Subject layer{"layer ", layer_function(each, options_), {attention.starts[0]}, {1.0}};
    test(each, layer, "sensitivity", nsimplex::sensitivity, {inputs * largest(first)});
    if (options_.skip_sharpness) return;
    test(each, layer, "sharpness", nsimplex::sharpness, {inputs * inputs * largest(second)});
  }

  void propositions(int64_t order) {
    for (const int64_t dim : options_.dims) {
      for (const Statement& statement : analysis::test_propositions(
               {.order = order, .dim = dim, .tokens = options_.tokens, .draws = options_.draws})) {
        Json line = to_json(statement);
        line["order"] = order;
        line["dim"] = dim;
        log_.write("statement", line);
        statements_.push_back(statement);
      }
    }
  }

  void conclude() const {
    if (!options_.json) print(statements_table(statements_));
  }

 private:
  // The function to climb, its starts, and the root mean square of each input's rows.
  struct Subject {
    std::string name;
    TensorFunction function;
    Tensors starts;
    std::vector<double> rms;
  };

  // One statement: each start is a draw, and its result is compared with the largest bound. The
  // bounds of single inputs (pairs of inputs) are counted separately.
  template <class Estimate>
  void test(const Case& each, const Subject& subject, const std::string& kind, Estimate estimate,
            const std::vector<double>& bounds) {
    SensitivityOptions own;
    own.ascent = {.steps = options_.steps, .tolerance = 1e-7, .between = interrupt::check};
    const auto fixed = estimate(subject.function, projected(subject), own);
    own.input_rms = subject.rms;
    const SensitivityEstimate found = estimate(subject.function, subject.starts, own);
    const std::string name = subject.name + kind;
    Statement statement(fmt::format("{} <= {:.4g}: {}", name, largest(bounds), each.text())),
        single("one by one");
    for (int64_t problem = 0; problem < found.value.size(0); ++problem) {
      statement.add_bound(found.value[problem].template item<double>(), largest(bounds));
      for (int64_t block = 0; block < found.blocks.size(0); ++block) {
        single.add_bound(found.blocks[block][problem].template item<double>(), bounds[block]);
      }
    }
    const int64_t gaussian = options_.starts;
    Json line = to_json(statement);
    line.update({{"analysis", kind},
                 {"subject", subject.name.empty() ? "attention" : "layer"},
                 {"single_draws", single.draws()},
                 {"single_violations", single.violations()},
                 {"order", each.order},
                 {"dim", each.dim},
                 {"scales", each.scales},
                 {"norms", numbers_of(each.norms)},
                 {"tokens", options_.tokens},
                 {"bound", largest(bounds)},
                 {"largest", largest(found.value)},
                 {"from_gaussian", largest(found.value.slice(0, 0, gaussian))},
                 {"at_gaussian", largest(fixed.value.slice(0, 0, gaussian))}});
    log_.write(kind, line);
    statements_.push_back(statement);
    if (statement.violations() + single.violations() > 0) save(each, name, found);
  }

  // Rows with the given root mean square, for inputs that stay fixed.
  static Tensors projected(const Subject& subject) {
    Tensors inputs;
    for (size_t i = 0; i < subject.starts.size(); ++i) {
      const Tensor& x = subject.starts[i];
      const double norm = subject.rms[i] * std::sqrt(static_cast<double>(x.size(-1)));
      inputs.push_back(analysis::project_rows(x, norm, /*sphere=*/true));
    }
    return inputs;
  }

  void save(const Case& each, const std::string& name, const SensitivityEstimate& found) const {
    if (options_.out.empty()) return;
    const int64_t best = found.value.argmax().item<int64_t>();
    io::Safetensors file;
    for (size_t i = 0; i < found.inputs.size(); ++i) {
      file.tensors.push_back({fmt::format("input.{}", i), found.inputs[i][best]});
      for (size_t k = 0; k < found.directions.size(); ++k) {
        file.tensors.push_back(
            {fmt::format("direction.{}.{}", k, i), found.directions[k][i][best]});
      }
    }
    io::write_safetensors(fmt::format("{}/counterexample-{}-{}-{}-{}-{}.safetensors", options_.out,
                                      name, each.order, each.dim, each.scales, each.norms),
                          file);
  }

  const SensitivityCommand& options_;
  RunLog& log_;
  std::vector<Statement> statements_;
};

int run_sensitivity(const SensitivityCommand& options) {
  std::vector<Case> cases;
  for (const int64_t order : options.orders) {
    for (const int64_t dim : options.dims) {
      for (const std::string& scales : options.scales) {
        for (const std::string& norms : options.norms) {
          cases.push_back({order, dim, scales, norms});
        }
      }
    }
  }
  RunLog log(options);
  SensitivityExperiment experiment(options, log);
  for (const int64_t order : options.orders) experiment.propositions(order);
  ProgressBar bar("sensitivity", std::ssize(cases), options.json);
  for (size_t i = 0; i < cases.size(); ++i) {
    experiment.measure(cases[i]);
    bar.update(static_cast<int64_t>(i) + 1);
  }
  bar.finish();
  experiment.conclude();
  return 0;
}

}  // namespace

void add_analyze_sensitivity(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<SensitivityCommand>();
  const auto sizes = within(int64_t{1}, int64_t{1} << 20);
  CLI::App& command = add_command(
      parent, session,
      {.name = "sensitivity",
       .summary = "Compare sensitivity and sharpness of attention with the bounds for its scales",
       .examples = "nsimplex lab sensitivity --out runs/sensitivity\n"
                   "nsimplex lab sensitivity --orders 1,2,3 --widths 8 --scales unit --json"},
      options, run_sensitivity);
  const auto add = option_adder(command, "Sweep");
  add("--orders", options->orders, "Numbers of key axes")
      ->delimiter(',')
      ->check(within(int64_t{1}, int64_t{8}));
  add("--widths", options->dims, "Widths of heads")->delimiter(',')->check(sizes);
  add("--scales", options->scales, "Scales: unit, standard or LOGIT:OUTPUT (two factors)")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->check(CLI::Validator(check_scales, "", "scales"));
  add("--norms", options->norms, "Root mean squares as Q:K:V, of q, of every k and of every v")
      ->type_name("Q:K:V,...")
      ->delimiter(',')
      ->check(CLI::Validator(check_norms, "", "norms"));
  add("--tokens", options->tokens, "Queries, and keys on every axis")->check(sizes);
  add("--starts", options->starts, "Ascents from normal inputs, and as many from aligned ones")
      ->check(sizes);
  add("--steps", options->steps, "Most steps of an ascent")->check(sizes);
  add("--draws", options->draws, "Draws per proposition")->check(sizes);
  command.add_flag("--skip-sharpness", options->skip_sharpness, "Measure only first derivatives")
      ->group("Sweep");
}

}  // namespace nsimplex::cli
