// `nsimplex lab transfer`: tests whether the best learning rate of a small language model stays the
// same as the model grows, with the scales `standard` and `unit`.

#include "lab/language/transfer_command.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nsimplex/analysis.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

#include "cli/lm_train.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "lab/experiments.h"
#include "lab/language/comparison.h"
#include "lab/language/comparison_options.h"
#include "nn/model_names.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

using analysis::Statement;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

BestRate best_of(const TransferCell& cell, const std::vector<TransferPoint>& points,
                 const std::set<double>& rates) {
  BestRate best{.cell = cell, .rate = kNan, .val_loss = kNan};
  for (const double rate : rates) {
    double sum = 0;
    int64_t seeds = 0;
    bool stable = true;
    for (const TransferPoint& point : points) {
      if (!(point.cell == cell) || point.rate != rate) continue;
      sum += point.val_loss;
      ++seeds;
      stable = stable && point.stable;
    }
    if (seeds == 0) continue;
    if (stable) best.largest_stable = rate;
    const double mean = sum / static_cast<double>(seeds);
    if (std::isfinite(mean) && !(mean >= best.val_loss)) {
      best.rate = rate;
      best.val_loss = mean;
    }
  }
  best.bracketed = best.rate > *rates.begin() && best.rate < *rates.rbegin();
  return best;
}

std::vector<TransferCell> cells_of(const std::vector<TransferPoint>& points) {
  std::vector<TransferCell> cells;
  for (const TransferPoint& point : points) {
    if (std::ranges::find(cells, point.cell) == cells.end()) cells.push_back(point.cell);
  }
  return cells;
}

}  // namespace

std::string name(const TransferCell& cell) {
  return fmt::format("{} {} x {}", cell.scale, cell.heads, cell.head_dim);
}

Json to_json(const TransferCell& cell) {
  return {{"analysis", "transfer"},    {"scale", cell.scale},
          {"axis", cell.axis},         {"heads", cell.heads},
          {"head_dim", cell.head_dim}, {"dim", cell.heads * cell.head_dim}};
}

Json to_json(const BestRate& best) {
  Json line = to_json(best.cell);
  line.update({{"best_rate", best.rate},
               {"best_loss", best.val_loss},
               {"largest_stable_rate", best.largest_stable},
               {"bracketed", best.bracketed},
               {"moved", best.moved}});
  return line;
}

TransferSummary summarize(const std::vector<TransferPoint>& points) {
  std::set<double> rates;
  for (const TransferPoint& point : points) rates.insert(point.rate);
  const auto place = [&](double rate) { return std::distance(rates.begin(), rates.find(rate)); };
  TransferSummary summary;
  std::vector<std::string> names;
  const BestRate* base = nullptr;
  const std::vector<TransferCell> cells = cells_of(points);
  summary.best.reserve(cells.size());
  for (const TransferCell& cell : cells) {
    BestRate& best = summary.best.emplace_back(best_of(cell, points, rates));
    if (cell.axis == kTransferBase) {
      base = &best;
      continue;
    }
    const std::string text =
        fmt::format("best rate within a step of the smallest model's: {} scales, more {}",
                    cell.scale, cell.axis);
    if (std::ranges::find(names, text) == names.end()) {
      names.push_back(text);
      summary.statements.emplace_back(text);
    }
    const bool known = base && std::isfinite(best.rate) && std::isfinite(base->rate);
    if (known) best.moved = place(best.rate) - place(base->rate);
    const auto steps = static_cast<double>(std::abs(best.moved));
    summary.statements.back().add(known && steps <= 1, known ? 1 - steps : kNan);
  }
  return summary;
}

std::string text_of(const TransferSummary& summary) {
  Table table(
      {"scale", "grew", "heads", "head dim", "best rate", "loss", "steps moved", "stable to"});
  for (const BestRate& best : summary.best) {
    const TransferCell& cell = best.cell;
    table.add({cell.scale, cell.axis, fmt::format("{}", cell.heads),
               fmt::format("{}", cell.head_dim),
               fmt::format("{:.3g}{}", best.rate, best.bracketed ? "" : " (end)"),
               fmt::format("{:.4f}", best.val_loss), fmt::format("{:+}", best.moved),
               fmt::format("{:.3g}", best.largest_stable)});
  }
  return table.text() + "\n" + statements_table(summary.statements);
}

namespace {

constexpr int64_t kReadingSteps = 10;  // of the ascents

struct TransferOptions : ComparisonOptions {
  std::vector<std::string> scales{"standard", "unit"}, axes{"head-dim", "heads"};
  std::vector<int64_t> factors{2, 4};
  std::vector<double> rates{5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2};
  int64_t head_dim = 16;
  bool skip_readings = false, bf16_gradients = false;

  TransferOptions() {
    model.layers = 2;
    model.every = 2;
    model.heads = 2;
    model.context = 32;
    training.steps = 100;
    training.warmup = 10;
    training.batch = 8;
    training.eval_every = 0;
    training.eval_tokens = 8192;
  }
};

// The models: for every scale the smallest one, then its growth along every axis.
std::vector<TransferCell> cells_of(const TransferOptions& o) {
  std::vector<TransferCell> cells;
  for (const std::string& scale : o.scales) {
    const TransferCell base{
        .scale = scale, .axis = kTransferBase, .heads = o.model.heads, .head_dim = o.head_dim};
    cells.push_back(base);
    for (const std::string& axis : o.axes) {
      for (const int64_t factor : o.factors) {
        TransferCell cell = base;
        cell.axis = axis;
        (axis == "heads" ? cell.heads : cell.head_dim) *= factor;
        cells.push_back(cell);
      }
    }
  }
  return cells;
}

LanguageModelOptions model_of(const TransferOptions& o, const TransferCell& cell,
                              int64_t vocabulary) {
  ModelFlags flags = o;
  flags.model.heads = cell.heads;
  flags.model.dim = cell.heads * cell.head_dim;
  flags.model.scale = parse_name<ScalePreset>("--scales", cell.scale);
  return language_model_options(flags, vocabulary);
}

// Diagnostics of the simplicial layers, as the largest over the layers, computed in double.
Json readings_of(LanguageModel& model, const TransferOptions& o, const training::Corpus& corpus) {
  const data::Slice slice = corpus.split.validation;
  const std::vector<int64_t> starts{slice.begin};
  const at::Tensor tokens = data::gather(corpus.tokens, starts, o.model.context).inputs;
  model->to(at::kDouble);
  const ModelReadingOptions options{
      .jacobians = false,
      .ascent = {.steps = kReadingSteps, .tolerance = 1e-3, .between = interrupt::check}};
  Json found;
  const auto largest = [&](const char* name, const at::Tensor& values) {
    if (!values.defined()) return;
    const double value = values.max().item<double>();
    if (!found.contains(name) || found[name].get<double>() < value) found[name] = value;
  };
  for (const LayerReading& reading : read_layers(model, tokens, options)) {
    if (reading.order < 2) continue;
    largest("logit_range", reading.logit_range);
    largest("alignment", reading.alignment);
    largest("relative_entropy", reading.relative_entropy);
    largest("sensitivity", reading.sensitivity);
    largest("sensitivity_bound", reading.sensitivity_bound);
  }
  model->to(at::kFloat);
  return found;
}

class TransferExperiment {
 public:
  TransferExperiment(const TransferOptions& o, const OpenCorpus& corpus, RunLog& log)
      : o_(o),
        corpus_(corpus),
        log_(log),
        cells_(cells_of(o)),
        bar_("transfer", std::ssize(cells_) * std::ssize(o.rates) * o.seeds * o.training.steps,
             o.json) {}

  void run() {
    for (const TransferCell& cell : cells_) {
      const LanguageModelOptions model = model_of(o_, cell, corpus_.vocabulary);
      for (const double rate : o_.rates) {
        for (int64_t s = 0; s < o_.seeds; ++s) train(cell, model, rate, o_.seed + s);
      }
    }
    bar_.finish();
  }

  const std::vector<TransferPoint>& points() const { return points_; }

 private:
  void train(const TransferCell& cell, const LanguageModelOptions& model, double rate,
             uint64_t seed) {
    training::TrainingOptions training = o_.training;
    training.lr = rate;
    training.seed = seed;
    const int64_t before = done_;
    Json early;
    training::RateTrialEvents events;
    events.step = [&](int64_t step, double loss) {
      interrupt::check();
      bar_.update(before + step, fmt::format("{} rate {:.2g} loss {:.3f}", name(cell), rate, loss));
    };
    if (!o_.skip_readings) {
      events.early = [&](LanguageModel& now) { early = readings_of(now, o_, corpus_.corpus); };
    }
    using training::GradientNumbers;
    training::RateTrial trial = training::train_at_rate(
        model, training, corpus_.corpus, o_.torch_device(), events,
        o_.bf16_gradients ? GradientNumbers::bfloat16 : GradientNumbers::full);
    done_ = before + training.steps;
    points_.push_back({cell, rate, trial.val_loss, trial.stable()});
    Json line = to_json(cell);
    line.update({{"rate", rate},
                 {"seed", seed},
                 {"diverged", trial.diverged},
                 {"stable", trial.stable()},
                 {"early_loss", trial.early_loss},
                 {"val_loss", trial.val_loss},
                 {"spikes", trial.spikes}});
    if (!trial.diverged) {
      line.update({{"gradient_peak", trial.gradient.peak},
                   {"gradient_kurtosis", trial.gradient.kurtosis},
                   {"int8_error", trial.gradient.int8_error}});
      if (!o_.skip_readings) line.update(readings_of(trial.model, o_, corpus_.corpus));
    }
    for (const auto& [figure, value] : early.items()) line["early_" + figure] = value;
    log_.write("transfer", line);
  }

  const TransferOptions& o_;
  const OpenCorpus& corpus_;
  RunLog& log_;
  std::vector<TransferCell> cells_;
  std::vector<TransferPoint> points_;
  ProgressBar bar_;
  int64_t done_ = 0;
};

int run_transfer(const TransferOptions& given) {
  TransferOptions o = given;
  complete(o);
  const int64_t every = o.model.every;
  if (!o.skip_readings && (every < 1 || o.model.layers < every)) {
    throw InputError(
        fmt::format("--layers: expected a simplicial layer to read, got --layers {} --every {}; "
                    "--skip-readings needs none",
                    o.model.layers, every));
  }
  const OpenCorpus opened = open_corpus(o);
  RunLog log(o);
  if (!o.json) print(describe(opened.corpus, o.training, o.model.context));
  TransferExperiment experiment(o, opened, log);
  experiment.run();
  const TransferSummary summary = summarize(experiment.points());
  for (const BestRate& best : summary.best) log.write("transfer_best", to_json(best));
  for (const analysis::Statement& statement : summary.statements)
    log.write("statement", to_json(statement));
  if (!o.json) print(text_of(summary));
  return 0;
}

}  // namespace

void add_analyze_transfer(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<TransferOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "transfer",
       .summary = "Find how the best learning rate of small language models changes as they grow",
       .examples = "nsimplex lab transfer --text shakespeare.txt --out runs/transfer --threads 1\n"
                   "nsimplex lab transfer --text shakespeare.txt --factors 2,4,8 --steps 1000 "
                   "--norm qkv",
       .acts = {.device = true}},
      options, run_transfer);
  const auto add = option_adder(command, "Sweep");
  const auto sizes = within(int64_t{1}, int64_t{1} << 20);
  add("--scales", options->scales, "Scales of the simplicial layers: standard, unit")
      ->delimiter(',')
      ->check(one_of(names_of<ScalePreset>()));
  add("--axes", options->axes,
      "How models grow: head-dim (with the same heads) or heads (with the same width)")
      ->delimiter(',')
      ->check(one_of({"head-dim", "heads"}));
  add("--head-width", options->head_dim,
      "Head width of the smallest model, which has --heads heads")
      ->check(sizes);
  add("--factors", options->factors, "Widths of the other models relative to the smallest one")
      ->delimiter(',')
      ->check(sizes);
  add("--rates", options->rates, "Learning rates to try, ascending")
      ->delimiter(',')
      ->check(above_zero());
  add("--seeds", options->seeds, "Number of seeds, counted up from --seed")->check(sizes);
  command
      .add_flag("--bf16-gradients", options->bf16_gradients,
                "Round every gradient to bfloat16 before it is clipped and used")
      ->group("Sweep");
  command
      .add_flag("--skip-readings", options->skip_readings,
                "Skip the logits and the sensitivity of the trained models")
      ->group("Sweep");
  add_corpus_options(command, *options);
  add_model_flags(command, *options, "a quarter of the context on every axis",
                  {"--width", "--head-width", "--scale", "--sparse", "--topk", "--indexer",
                   "--indexer-scores", "--indexer-loss", "--sinks", "--orders"});
  add_training_flags(command, options->training);
  command.remove_option(command.get_option("--lr"));
}

}  // namespace nsimplex::cli
