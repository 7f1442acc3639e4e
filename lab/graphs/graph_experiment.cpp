// Trains and compares several graph models over several seeds, beside published figures.

#include "lab/graphs/graph_experiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cli/output.h"
#include "cli/results.h"
#include "cli/run_folder.h"
#include "equivariant/classes/equivariant_classes.h"
#include "io/input_file.h"
#include "kernels/common/rounding.h"
#include "support/error.h"
#include "train/checkpoint.h"

namespace nsimplex::cli {
namespace {

using training::GraphPoint;
using training::Scores;

training::GraphTrainingOptions training_of(const GraphArm& arm, const GraphExperimentOptions& o) {
  training::GraphTrainingOptions training = arm.training;
  training.epochs = o.epochs.value_or(training.epochs);
  training.batch = o.batch.value_or(training.batch);
  training.evaluate_every = o.evaluate_every.value_or(training.evaluate_every);
  training.patience = o.patience.value_or(training.patience);
  training.learning_rate = o.learning_rate.value_or(training.learning_rate);
  training.warmup = o.warmup.value_or(training.warmup);
  training.clip = o.clip.value_or(training.clip);
  training.weight_decay = o.weight_decay.value_or(training.weight_decay);
  training.ema = o.ema.value_or(training.ema);
  training.redraw = o.redraw.value_or(training.redraw);
  training.seconds = o.max_seconds.value_or(training.seconds);
  return training;
}

// The models' results beside the paper's figures.
class GraphTable {
 public:
  GraphTable(const GraphExperiment& experiment, const Results& trained, const Results& references)
      : experiment_(experiment), trained_(trained), references_(references) {}

  // One line per trained model, with means and deviations, and one for each model that the paper
  // alone has figures of.
  std::vector<Json> lines() const {
    std::vector<Json> lines;
    for (const GraphArm& arm : experiment_.arms) {
      if (!trained_.has(arm.name)) continue;
      Json line{
          {"task", experiment_.task}, {"model", arm.name}, {"seeds", trained_.trials(arm.name)}};
      for (const std::string& metric : test_metrics(arm.name)) {
        trained_.write(line, arm.name, metric, metric + "_mean");
      }
      add_scores(line, arm.published, "published_");
      lines.push_back(std::move(line));
    }
    for (const PublishedScores& each : experiment_.published) {
      Json line{{"task", experiment_.task}, {"model", each.name}};
      add_scores(line, each.scores, "published_");
      lines.push_back(std::move(line));
    }
    return lines;
  }

  // One row per model: metrics of the best epoch, the first of them of the last one, the paper's.
  // Empty where there is nothing to show.
  std::string text() const {
    const std::vector<std::string> metrics = shown_metrics();
    if (metrics.empty()) return "";
    const std::vector<std::string> of_paper = published_metrics(metrics);
    std::vector<std::string> header{"model"};
    header.insert(header.end(), metrics.begin(), metrics.end());
    header.push_back("last " + metrics.front());
    for (const std::string& metric : of_paper) header.push_back("paper " + metric);
    header.insert(header.end(), {"seeds", "epochs", "parameters", "seconds"});
    Table table(header);
    for (const std::string& name : references_.models()) {
      std::vector<std::string> row{name};
      for (const std::string& metric : metrics) row.push_back(cell(references_, name, metric));
      table.add(row);
    }
    for (const GraphArm& arm : experiment_.arms) {
      if (!trained_.has(arm.name)) continue;
      std::vector<std::string> row{arm.name};
      for (const std::string& metric : metrics) row.push_back(cell(trained_, arm.name, metric));
      row.push_back(cell(trained_, arm.name, "last_" + metrics.front()));
      add_published(row, arm.published, of_paper);
      const auto mean = [&](const char* name) { return trained_.spread(arm.name, name).mean; };
      row.push_back(fmt::format("{}", trained_.trials(arm.name)));
      row.push_back(fmt::format("{:.4g}", mean("epochs")));
      row.push_back(fmt::format("{:.0f}", trained_.values(arm.name, "parameters").front()));
      row.push_back(fmt::format("{:.1f}", mean("seconds")));
      table.add(row);
    }
    for (const PublishedScores& each : experiment_.published) {
      std::vector<std::string> row{each.name + " (paper)"};
      row.resize(2 + metrics.size());
      add_published(row, each.scores, of_paper);
      table.add(row);
    }
    return table.text();
  }

 private:
  // Of the test split, as a result has them: of the best epoch, then of the last one.
  std::vector<std::string> test_metrics(const std::string& model) const {
    std::vector<std::string> metrics = trained_.metrics(model);
    const auto other = std::ranges::find_if(metrics, [](const std::string& name) {
      return name.starts_with("validation_") || name == "best_epoch";
    });
    metrics.erase(other, metrics.end());
    return metrics;
  }

  std::vector<std::string> shown_metrics() const {
    if (trained_.models().empty() && references_.models().empty()) return {};
    if (!experiment_.shown.empty()) return experiment_.shown;
    if (trained_.models().empty()) return references_.metrics(references_.models().front());
    std::vector<std::string> metrics = test_metrics(trained_.models().front());
    std::erase_if(metrics, [](const std::string& name) { return name.starts_with("last_"); });
    return metrics;
  }

  std::vector<std::string> published_metrics(const std::vector<std::string>& metrics) const {
    std::vector<std::string> published;
    for (const std::string& metric : metrics) {
      const auto has = [&](const GraphArm& arm) {
        return std::ranges::count(arm.published, metric, &training::Scores::value_type::first) > 0;
      };
      if (std::ranges::any_of(experiment_.arms, has)) published.push_back(metric);
    }
    return published;
  }

  std::string cell(const Results& results, const std::string& model,
                   const std::string& metric) const {
    return results.cell(model, metric, experiment_.digits, experiment_.scale);
  }

  void add_published(std::vector<std::string>& row, const Scores& scores,
                     const std::vector<std::string>& metrics) const {
    for (const std::string& metric : metrics) {
      const double value = value_of(scores, metric);
      row.push_back(std::isnan(value)
                        ? ""
                        : fmt::format("{:.{}f}", experiment_.scale * value, experiment_.digits));
    }
  }

  const GraphExperiment& experiment_;
  const Results &trained_, &references_;
};

class Experiment {
 public:
  Experiment(const GraphExperimentOptions& options, const GraphExperiment& experiment)
      : options_(options), experiment_(experiment), log_(options) {
    if (options.resume.empty()) remove_state();  // of a run that is written over
  }

  int run() {
    for (int64_t s = 0; s < options_.seeds && !interrupt::requested(); ++s) {
      const uint64_t seed = options_.seed + static_cast<uint64_t>(s);
      if (is_finished(seed)) {
        take_finished(seed);
        continue;
      }
      const std::unique_ptr<training::GraphTask> task = experiment_.draw(seed);
      for (const auto& [name, scores] : task->references()) {
        Json line = line_of(name, seed);
        add_scores(line, scores);
        write_reference(name, seed, line);
      }
      for (const GraphArm& arm : experiment_.arms) {
        if (interrupt::requested() || !chosen(arm)) continue;
        if (const Json* line = finished(arm, seed)) {
          write_result(arm, seed, *line);
        } else {
          train(*task, arm, seed);
        }
      }
    }
    const GraphTable table(experiment_, results_, references_);
    for (const Json& line : table.lines()) log_.write("graph_mean", line);
    if (!options_.json) print(table.text());
    interrupt::check();
    log_.say_if_finished();
    return 0;
  }

 private:
  bool chosen(const GraphArm& arm) const {
    return options_.models.empty() || std::find(options_.models.begin(), options_.models.end(),
                                                arm.name) != options_.models.end();
  }

  Json line_of(const std::string& model) const {
    return {{"task", experiment_.task}, {"model", model}};
  }

  Json line_of(const std::string& model, uint64_t seed) const {
    return {{"task", experiment_.task}, {"model", model}, {"seed", seed}};
  }

  // The result of a training that an earlier part of this run finished; nullptr if it still has to
  // run.
  const Json* finished(const GraphArm& arm, uint64_t seed) const {
    Json key = line_of(arm.name, seed);
    key["stopped"] = false;
    return log_.find(key);
  }

  bool is_finished(uint64_t seed) const {
    return !log_.earlier().empty() &&
           std::ranges::all_of(experiment_.arms, [&](const GraphArm& arm) {
             return !chosen(arm) || finished(arm, seed) != nullptr;
           });
  }

  void write_result(const GraphArm& arm, uint64_t seed, const Json& line) {
    log_.write("graph_result", line);
    results_.add(arm.name, Results::trial_of(seed), scores_of(line));
  }

  void write_reference(const std::string& name, uint64_t seed, const Json& line) {
    log_.write("graph_reference", line);
    references_.add(name, Results::trial_of(seed), scores_of(line));
  }

  // Data are drawn only for trainings; the references of finished ones are known.
  void take_finished(uint64_t seed) {
    for (const Json& line : log_.earlier()) {
      const auto name = line.find("model");
      const bool reference = !line.contains("epoch") && !line.contains("stopped") &&
                             line.contains("seed") && line["seed"] == seed && name != line.end() &&
                             name->is_string();
      if (!reference) continue;
      write_reference(*name, seed, line);
    }
    for (const GraphArm& arm : experiment_.arms) {
      if (chosen(arm)) write_result(arm, seed, *finished(arm, seed));
    }
  }

  // The file with the state of the current training, and the text in it that identifies this
  // training.
  std::string state_file() const { return options_.out + "/" + training::kCheckpointFile; }
  void remove_state() const {
    if (options_.out.empty()) return;
    std::error_code ignored;  // a remaining file belongs to a finished training
    std::filesystem::remove(state_file(), ignored);
  }
  std::string state_key(const GraphArm& arm, uint64_t seed) const {
    return line_of(arm.name, seed).dump() + "\n" + io::read_text(options_.out + "/" + kConfigFile);
  }

  void train(training::GraphTask& task, const GraphArm& arm, uint64_t seed) {
    const training::GraphTrainingOptions training = training_of(arm, options_);
    const int64_t batches = ceil_div(task.size(training::GraphSplit::train), training.batch);
    ProgressBar bar(fmt::format("{} {} seed {}", experiment_.task, arm.name, seed),
                    training.epochs * batches, options_.json);
    std::optional<training::GraphState> start;
    training::GraphEvents events;
    if (!options_.out.empty()) {
      const std::string key = state_key(arm, seed);
      if (!options_.resume.empty()) start = training::read_graph_state(state_file(), key);
      events.save = [this, key](const training::GraphState& state) {
        log_.sync();  // the state refers to these points, so they must be on disk first
        training::write_graph_state(state_file(), key, state);
      };
    }
    if (start) {
      bar.start_at((start->epoch - 1) * batches + ceil_div(start->begin, training.batch));
    }
    std::string validated;
    events.stop = interrupt::requested;
    events.step = [&](int64_t done, int64_t, double loss) {
      bar.update(done, fmt::format("loss {:.4f}{}", loss, validated));
    };
    events.point = [&](const GraphPoint& point) {
      const auto& [name, value] = point.validation.front();
      validated = fmt::format("  validation {} {:.4f}", name, value);
      Json line = line_of(arm.name, seed);
      line["epoch"] = point.epoch;
      if (log_.find(line) != nullptr) return;  // an earlier part of the run wrote it already
      line["step"] = point.step;
      line["loss"] = point.loss;
      add_scores(line, point.validation, "validation_");
      line["seconds"] = point.seconds;
      log_.write("graph_point", line, /*shown=*/false);
    };
    const auto result =
        training::train_graphs(task, arm.make, training, seed, events, start ? &*start : nullptr);
    if (!result) return;  // interrupted before the first validation
    Json line = line_of(arm.name, seed);
    if (!experiment_.reading.is_null()) line["read"] = experiment_.reading;
    add_scores(line, result->best_test);
    add_scores(line, result->last_test, "last_");
    add_scores(line, result->best.validation, "validation_");
    line["best_epoch"] = result->best.epoch;
    line["epochs"] = result->last.epoch;
    line["seconds"] = result->last.seconds;
    line["step_seconds"] = result->step_seconds;
    line["parameters"] = result->parameters;
    line["stopped"] = result->stopped;
    write_result(arm, seed, line);
    if (result->stopped || options_.out.empty()) return;
    log_.sync();
    remove_state();
  }

  const GraphExperimentOptions& options_;
  const GraphExperiment& experiment_;
  RunLog log_;
  Results results_, references_;  // of trained models, of what needs no training
};

}  // namespace

void add_experiment_options(CLI::App& command, GraphExperimentOptions& o,
                            const std::vector<std::string>& models) {
  const std::string group = "Training";
  const auto positive = within(int64_t{1}, int64_t{1} << 40);
  command
      .add_option("--models", o.models,
                  fmt::format("Models to train; default: all of {}", fmt::join(models, ", ")))
      ->delimiter(',')
      ->check(one_of(models))
      ->group(group);
  command.add_option("--seeds", o.seeds, "Number of seeds, counted up from --seed")
      ->check(positive)
      ->capture_default_str()
      ->group(group);
  const auto add = [&](const char* name, auto& value, const char* text) {
    return command.add_option(name, value, text)->group(group);
  };
  // Ranges are checked together with each model's own values.
  add("--epochs", o.epochs, "Epochs of every model");
  add("--batch", o.batch, "Examples per step");
  add("--lr", o.learning_rate, "Learning rate after warm-up");
  add("--warmup", o.warmup, "Epochs of linear warm-up");
  add("--clip", o.clip, "Largest norm of the gradient; 0: unlimited");
  add("--weight-decay", o.weight_decay, "Weight decay of matrices");
  add("--ema", o.ema,
      "Decay of a moving average of the weights, which is evaluated instead of them; 0: none");
  add("--eval-every", o.evaluate_every, "Epochs between validations");
  add("--seconds", o.max_seconds,
      "Training time per model in seconds, to compare models at equal times");
  add("--patience", o.patience,
      "Stop a training after this many epochs without a better validation; 0: never");
  const auto of_kernel = option_adder(command, "Kernel attention");
  of_kernel("--feature-map", o.feature_map, "Features of queries and keys: relu or exponential")
      ->check(one_of(names_of<FeatureMap>()));
  of_kernel("--features", o.features, "Random features per head of d channels; 0: d ln d")
      ->check(within(int64_t{0}, int64_t{1} << 16));
  of_kernel("--redraw", o.redraw,
            "Share of the training in which every step draws new random features");
}

void add_kernel_readout(CLI::App& command, std::string& readout) {
  option_adder(command, "Kernel attention")(
      "--readout", readout,
      "Attention of the last layer of kernel models: kernel, or softmax as tables 6a and 6c of the "
      "paper print it")
      ->check(one_of({"kernel", "softmax"}));
}

training::KernelFeatureOptions kernel_features(const GraphExperimentOptions& options) {
  return {parse_name<FeatureMap>("--feature-map", options.feature_map), options.features};
}

int run_experiment(const GraphExperimentOptions& options, const GraphExperiment& experiment) {
  for (const GraphArm& arm : experiment.arms) {
    training::check(training_of(arm, options));  // before anything is written
  }
  return Experiment(options, experiment).run();
}

}  // namespace nsimplex::cli
