#include "cli/causal_certainty.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <vector>

#include "causal/option_names.h"
#include "causal/tensors.h"
#include "cli/python_program.h"
#include "io/output_file.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

using causal::Matrix;

constexpr int64_t kMostResamples = 100'000;

const std::vector<std::string>& resamplings() {
  static const std::vector<std::string> all{"halves", "bootstrap"};
  return all;
}

Json cells_of(const Matrix& matrix) {
  Json rows = Json::array();
  for (int64_t i = 0; i < matrix.rows(); ++i) {
    Json row = Json::array();
    for (int64_t j = 0; j < matrix.cols(); ++j) row.push_back(matrix(i, j));
    rows.push_back(std::move(row));
  }
  return rows;
}

Json pairs_of(const std::vector<CausalEdge>& edges) {
  Json pairs = Json::array();
  for (const CausalEdge& edge : edges) pairs.push_back({edge.cause, edge.effect});
  return pairs;
}

// The arguments of nsimplex.causal.structure.fit_options.
Json fit_options_of(const CausalFitOptions& o) {
  std::vector<std::string> kinds;
  for (const ColumnKind kind : o.kinds) kinds.emplace_back(name_of(kind));
  return {{"estimator", name_of(o.estimator)},
          {"nonlinear", o.nonlinear},
          {"standardise", o.standardise},
          {"threshold", o.threshold ? Json(*o.threshold) : Json()},
          {"sparsity", o.sparsity ? Json(*o.sparsity) : Json()},
          {"rank", o.rank},
          {"sample", o.sample},
          {"seed", o.seed},
          {"forbidden", pairs_of(o.constraints.forbidden)},
          {"required", pairs_of(o.constraints.required)},
          {"tiers", o.constraints.tiers},
          {"groups", o.groups},
          {"targets", o.targets},
          {"soft", o.soft},
          {"kinds", kinds},
          {"missing", name_of(o.missing)}};
}

std::string compact(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

void add_certainty_options(CLI::App& command, FitOptions& options) {
  const auto add = option_adder(command, "Certainty");
  add("--confidence", options.confidence,
      "Samples of the rows from which the graph is learned again; 0: none. Says how often each "
      "edge "
      "is found, and the interval of its weight")
      ->check(CLI::Range(int64_t{0}, kMostResamples));
  add("--resampling", options.resampling,
      fmt::format("Samples of --confidence: {}", fmt::join(resamplings(), ", ")))
      ->check(CLI::IsMember(resamplings()));
  command
      .add_flag("--limits", options.limits,
                "Say which directions, units and hidden causes the table leaves open")
      ->group("Certainty");
}

void check_certainty(const FitOptions& o) {
  if (o.confidence == 1) throw InputError("--confidence: expected 0 or at least 2, got 1");
  if (o.limits && o.table.missing == name_of(MissingValues::likelihood)) {
    throw InputError("--limits: expected a table without gaps, got --missing likelihood");
  }
}

void measure_certainty(const FitOptions& o, const CausalFitOptions& fitted,
                       const CausalTable& table, const CausalFit& fit, RunLog& log) {
  if (o.confidence == 0 && !o.limits) return;
  const Json request{{"threads", o.threads},       {"confidence", o.confidence},
                     {"resampling", o.resampling}, {"limits", o.limits},
                     {"out", !o.out.empty()},      {"options", fit_options_of(fitted)}};
  std::unique_ptr<ProgressBar> bar;
  if (o.confidence > 0) bar = std::make_unique<ProgressBar>("confidence", o.confidence, o.json);
  const auto take = [&](const Json& line) -> std::string {
    if (line.contains("given")) {
      return compact({{"names", table.names},
                      {"values", cells_of(table.observations.values)},
                      {"adjacency", cells_of(causal::view_matrix(fit.adjacency))}});
    }
    if (line.contains("progress")) {
      bar->update(line["progress"][0].get<int64_t>());
    } else if (line.contains("log")) {
      Json fields = line["log"];
      const std::string kind = fields["kind"];
      fields.erase("kind");
      log.write(kind, fields);
    } else if (line.contains("file") && !o.out.empty()) {
      const Json& file = line["file"];  // its name and its text
      io::write_text(o.out + "/" + file[0].get<std::string>(), file[1].get<std::string>());
    } else if (line.contains("table") && !o.json) {
      print("\n" + text_of_table(line["table"]));
    } else if (line.contains("text") && !o.json) {
      print(line["text"].get<std::string>() + "\n");
    }
    return "";
  };
  const int code = run_python({.command = "causal fit",
                               .module = "nsimplex.causal.fit_command",
                               .needs = "nsimplex",
                               .installs = "",
                               .arguments = {compact(request)}},
                              take);
  if (code != 0) throw std::runtime_error("the program of --confidence and --limits has failed");
}

}  // namespace nsimplex::cli
