// The command `causal predict`: the answers of a saved feature model for new rows.

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "causal/graph/graph_text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "cli/text_flags.h"
#include "data/observations.h"
#include "io/output_file.h"
#include "support/error.h"
#include "support/printable.h"
#include "train/feature_model.h"

namespace nsimplex::cli {
namespace {

constexpr char kPredictionsFile[] = "predictions.csv";

struct PredictOptions : CommonOptions {
  std::string model, table;
  TextFlags text;
};

// The columns of the model, by name and in its order. Every row must be complete.
at::Tensor model_columns(const training::FeatureModel& model, const data::Observations& observed,
                         const std::string& path) {
  std::map<std::string, std::vector<int64_t>> places;
  for (size_t column = 0; column < observed.features.size(); ++column) {
    places[observed.features[column]].push_back(static_cast<int64_t>(column));
  }
  std::vector<int64_t> chosen;
  for (const std::string& name : model.features) {
    const auto found = places.find(name);
    if (found == places.end() || found->second.size() > 1) {
      throw InputError(fmt::format("TABLE: expected one column {}, as in the model; {} has {}",
                                   quoted_name(name), path,
                                   found == places.end() ? "none" : "several"));
    }
    chosen.push_back(found->second.front());
  }
  const at::Tensor all = model.counts ? data::scaled_counts(observed.values) : observed.values;
  const at::Tensor values = all.index_select(1, at::tensor(chosen, at::kLong));
  const at::Tensor missing = values.isfinite().logical_not().nonzero();
  if (missing.size(0) > 0) {
    const auto column = static_cast<size_t>(missing[0][1].item<int64_t>());
    throw InputError(fmt::format(
        "TABLE: expected a number in every column of the model; row {} of {} has none in {}",
        missing[0][0].item<int64_t>() + 1, path, quoted_name(model.features[column])));
  }
  return values;
}

// One prediction per row: a class with the probability of every class, or a number.
class Predictions {
 public:
  Predictions(const training::FeatureModel& model, const data::Observations& observed,
              const at::Tensor& answers)
      : classes_(model.classes), names_(observed.names), answers_(answers.contiguous()) {}

  int64_t rows() const { return answers_.size(0); }

  std::string name(int64_t row) const {
    return names_.empty() ? fmt::format("{}", row + 1) : names_[static_cast<size_t>(row)];
  }

  Json line(int64_t row) const {
    Json line{{"task", "predict"}, {"row", name(row)}};
    if (classes_.empty()) {
      line["number"] = at(row, 0);
      return line;
    }
    line["label"] = classes_[likeliest(row)];
    Json& probabilities = line["probabilities"] = Json::object();
    for (size_t c = 0; c < classes_.size(); ++c) probabilities[classes_[c]] = at(row, c);
    return line;
  }

  std::string csv() const {
    std::string text = classes_.empty() ? "row,number" : "row,label";
    for (const std::string& each : classes_) text += "," + causal::text_cell(each);
    text += '\n';
    for (int64_t row = 0; row < rows(); ++row) {
      text += causal::text_cell(name(row));
      if (!classes_.empty()) text += "," + causal::text_cell(classes_[likeliest(row)]);
      for (size_t c = 0; c < width(); ++c) text += fmt::format(",{}", at(row, c));
      text += '\n';
    }
    return text;
  }

  std::string table() const {
    Table table(classes_.empty() ? std::vector<std::string>{"row", "number"}
                                 : std::vector<std::string>{"row", "label", "probability"});
    for (int64_t row = 0; row < rows(); ++row) {
      if (classes_.empty()) {
        table.add({name(row), fmt::format("{:.6g}", at(row, 0))});
      } else {
        const size_t label = likeliest(row);
        table.add({name(row), classes_[label], fmt::format("{:.4f}", at(row, label))});
      }
    }
    return table.text();
  }

 private:
  size_t width() const { return std::max<size_t>(classes_.size(), 1); }
  double at(int64_t row, size_t column) const {
    return answers_.const_data_ptr<double>()[static_cast<size_t>(row) * width() + column];
  }
  size_t likeliest(int64_t row) const {
    size_t best = 0;
    for (size_t c = 1; c < classes_.size(); ++c) {
      if (at(row, c) > at(row, best)) best = c;
    }
    return best;
  }

  const std::vector<std::string>& classes_;
  const std::vector<std::string>& names_;
  at::Tensor answers_;
};

int run_predict(const PredictOptions& o) {
  training::FeatureModel model = training::read_feature_model(o.model);
  const data::Observations observed =
      data::read_observations(o.table, {.text = text_options(o.text)});
  say_reading(o.text, o.table, size_of_table(observed.values.size(0), observed.values.size(1)),
              observed.reading);
  const at::Tensor values = model_columns(model, observed, o.table);
  const Predictions predictions(model, observed, training::feature_answers(model, values));
  RunLog log(o);
  if (!o.out.empty()) io::write_text(o.out + "/" + kPredictionsFile, predictions.csv());
  for (int64_t row = 0; row < predictions.rows(); ++row)
    log.write("predict", predictions.line(row));
  if (!o.json) print(predictions.table());
  return 0;
}

}  // namespace

void add_causal_predict(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<PredictOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "predict",
       .summary = "Predict new rows with a model that classify or regress --save-models wrote",
       .examples =
           "nsimplex causal predict runs/cells/model-cape-1-1.safetensors new.csv\n"
           "nsimplex causal predict runs/cells/model-cape-1-1.safetensors new.csv --out runs/new",
       .acts = {.seed = false},
       .files = {kPredictionsFile}},
      options, run_predict);
  add_argument(command, "MODEL", options->model,
               "A model that causal task classify or regress saved");
  add_argument(command, "TABLE", options->table,
               "New rows with the columns of the model, by name, in any order");
  add_text_options(command, options->text, /*table=*/true);
}

}  // namespace nsimplex::cli
