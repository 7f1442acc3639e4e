// `nsimplex analyze model`: diagnostics between the layers of a trained language model over a text.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nsimplex/analysis.h>

#include <algorithm>

#include "analysis/statement.h"
#include "cli/commands.h"
#include "cli/lm_command.h"
#include "cli/model_program.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

using analysis::Statement;
using at::Tensor;

struct ModelCommand : CommonOptions {
  std::string model;
  RecordedText text;
  int64_t context = 0, windows = 4, steps = 30;
  bool skip_derivatives = false;
  std::string page;
  int64_t samples = 32;
};

constexpr int64_t kMostContext = 64;  // default limit, since all tuples of a window are stored

// Windows spread evenly over the slice.
Tensor windows_of(const data::Tokens& tokens, data::Slice slice, int64_t windows, int64_t context) {
  const int64_t room = slice.size() - context - 1;
  if (room < 0) {
    throw InputError(
        fmt::format("--context: expected fewer than the {} tokens of the split, got {}",
                    slice.size(), context));
  }
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < windows; ++i) starts.push_back(slice.begin + i * room / windows);
  return data::gather(tokens, starts, context).inputs;
}

std::string kind_of(const LayerReading& reading) {
  if (reading.order == 0) return "embedding";
  const std::string order = fmt::format("order {}", reading.order);
  return reading.attends_to_all ? order : order + ", chosen or separable";
}

// Means over the windows; null if a metric does not apply.
Json figures_of(const LayerReading& reading) {
  Json figures;
  const auto add = [&](const char* name, const Tensor& values) {
    figures[name] = values.defined() ? Json(values.mean().item<double>()) : Json(nullptr);
  };
  add("residual", reading.residual);
  add("ratio", reading.ratio);
  add("effective_rank", reading.effective_rank);
  add("mean_cosine", reading.mean_cosine);
  add("dirichlet_energy", reading.dirichlet_energy);
  add("logit_range", reading.logit_range);
  add("alignment", reading.alignment);
  add("entropy", reading.entropy);
  add("relative_entropy", reading.relative_entropy);
  add("block_jacobian", reading.block_jacobian);
  add("attention_jacobian", reading.attention_jacobian);
  add("sensitivity", reading.sensitivity);
  add("sensitivity_bound", reading.sensitivity_bound);
  return figures;
}

std::string table_of(const std::vector<Json>& layers) {
  const std::vector<std::pair<std::string, std::string>> columns = {
      {"ratio", "residual"},           {"effective_rank", "rank"},
      {"mean_cosine", "cosine"},       {"dirichlet_energy", "Dirichlet"},
      {"logit_range", "logits"},       {"relative_entropy", "entropy"},
      {"block_jacobian", "|J| block"}, {"attention_jacobian", "|J| attention"},
      {"sensitivity", "sensitivity"},  {"sensitivity_bound", "bound"}};
  std::vector<std::string> header{"layer", "attention"};
  for (const auto& each : columns) header.push_back(each.second);
  Table table(header);
  for (const Json& layer : layers) {
    std::vector<std::string> row{fmt::format("{}", layer["layer"].get<int64_t>()),
                                 layer["layer_kind"].get<std::string>()};
    for (const auto& each : columns) {
      const Json& value = layer[each.first];
      row.push_back(value.is_null() ? "-" : fmt::format("{:.4g}", value.get<double>()));
    }
    table.add(row);
  }
  return table.text();
}

Statement sensitivity_statement(const std::vector<LayerReading>& readings) {
  Statement statement("sensitivity <= bound for the norms of q, k and v");
  for (const LayerReading& reading : readings) {
    for (int64_t b = 0; reading.sensitivity.defined() && b < reading.sensitivity.size(0); ++b) {
      statement.add_bound(reading.sensitivity[b].item<double>(),
                          reading.sensitivity_bound[b].item<double>());
    }
  }
  return statement;
}

// A list of numbers per window.
Json rows_of(const Tensor& windows) {
  Json rows = Json::array();
  for (int64_t i = 0; i < windows.size(0); ++i) {
    const Tensor row = windows[i].to(at::kLong).contiguous();
    const int64_t* data = row.const_data_ptr<int64_t>();
    rows.push_back(std::vector<int64_t>(data, data + row.numel()));
  }
  return rows;
}

ModelProgram page_program(const ModelCommand& o) {
  return {.python = {.command = "analyze model --page",
                     .module = "nsimplex.model_command.layer_page",
                     .package = "matplotlib",
                     .extra = "plots",
                     .arguments = {}},
          .request = {{"model", o.model},
                      {"threads", o.threads},
                      {"derivatives", !o.skip_derivatives},
                      {"samples", o.samples},
                      {"steps", o.steps}},
          .given = {},
          .files = {{"--page", o.page}}};
}

// The report of nsimplex.analysis.report about the same windows.
int run_page(const ModelCommand& o, ModelProgram program, int64_t step, const Tensor& windows) {
  program.given = rows_of(windows);
  program.request["step"] = step;
  RunLog log(o);
  return run_model_program(program, o.json,
                           [&](const Json& line) { log.write("attention_layer", line); });
}

int run_model(const ModelCommand& o) {
  const ModelProgram program = page_program(o);
  check_files(program);
  LoadedModel loaded = load_model(o.model, c10::kCPU);
  const data::Tokens tokens = open_recorded(o.text, loaded);
  const int64_t context =
      o.context > 0 ? o.context : std::min(loaded.model->options().context, kMostContext);
  const Tensor windows = windows_of(tokens, slice_of(tokens, o.text.split), o.windows, context);
  if (!o.page.empty()) return run_page(o, program, loaded.step, windows);
  loaded.model->to(at::kDouble);

  RunLog log(o);
  ProgressBar bar("layers", loaded.model->options().layers, o.json);
  ModelReadingOptions options;
  options.jacobians = options.sensitivities = !o.skip_derivatives;
  options.ascent = {.steps = o.steps, .tolerance = 1e-4, .between = interrupt::check};
  options.layer_done = [&](int64_t layer) { bar.update(layer); };
  const std::vector<LayerReading> readings = read_layers(loaded.model, windows, options);
  bar.finish();

  std::vector<Json> layers;
  for (size_t i = 0; i < readings.size(); ++i) {
    Json line{
        {"analysis", "model"},        {"layer", i},          {"layer_kind", kind_of(readings[i])},
        {"order", readings[i].order}, {"step", loaded.step}, {"windows", o.windows},
        {"context", context}};
    line.update(figures_of(readings[i]));
    log.write("layer", line);
    layers.push_back(line);
  }
  const Statement statement = sensitivity_statement(readings);
  if (statement.draws() > 0) log.write("statement", to_json(statement));
  if (o.json) return 0;
  print(table_of(layers));
  if (statement.draws() > 0) print("\n" + statements_table({statement}));
  return 0;
}

}  // namespace

void add_analyze_model(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<ModelCommand>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "model",
       .summary =
           "Measure collapse, logits and derivatives in each layer of a trained language model",
       .examples = "nsimplex analyze model runs/first\n"
                   "nsimplex analyze model runs/first --text other.txt --part all --json\n"
                   "nsimplex analyze model runs/first --page layers.html --steps 6",
       .acts = {.seed = false}},
      options, run_model);
  add_recorded_text(command, options->text, options->model);
  const auto add = option_adder(command, "Analysis");
  const auto positive = within(int64_t{1}, int64_t{1} << 20);
  add("--context", options->context, "Tokens per window; 0: the model's context, at most 64")
      ->check(within(int64_t{0}, int64_t{1} << 20));
  add("--windows", options->windows, "Number of windows, spread evenly over the part")
      ->check(positive);
  add("--steps", options->steps, "Most steps of the power iterations")->check(positive);
  command
      .add_flag("--skip-derivatives", options->skip_derivatives,
                "Skip the Jacobians and the sensitivity")
      ->group("Analysis");
  command
      .add_option(
          "--page", options->page,
          "Measure the attention layers alone, print a table of them and write this HTML page")
      ->type_name("FILE")
      ->group("Report");
  option_adder(command, "Report")(
      "--queries", options->samples,
      "Number of queries of the first window whose attention weights go into --page")
      ->check(positive);
}

}  // namespace nsimplex::cli
