#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "cli/causal.h"
#include "cli/causal_study.h"

namespace nsimplex::cli {
namespace {

struct RegressOptions : StudyOptions {
  std::string target;
  int64_t parts = 8;
  double noise = 0.1;
};

// A target of known kind: the sum over `parts` drawn columns, in deviations, of w_j tanh(x_j), and
// of w_j x_j x_k over neighbours among them; with noise of a share of its deviation.
at::Tensor made_target(const at::Tensor& values, const RegressOptions& o) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(o.seed);
  const at::Tensor columns = data::most_variable(values, o.columns);
  const int64_t parts = std::min(o.parts, columns.size(0));
  const at::Tensor chosen = columns.index_select(
      0, at::randperm(columns.size(0), generator, at::kLong).narrow(0, 0, parts));
  at::Tensor x = values.index_select(1, chosen);
  x = (x - x.mean(0)) / x.std(0, /*unbiased=*/false).clamp_min(1e-12);
  const at::Tensor weights = at::randn({2, parts}, generator, at::kDouble);
  const at::Tensor pure = (weights[0] * x.tanh() + 0.5 * weights[1] * x * x.roll(1, 1)).sum(1);
  const at::Tensor drawn = at::randn(pure.sizes(), generator, at::kDouble);
  return pure + o.noise * pure.std(/*unbiased=*/false) * drawn;
}

int run_regress(const RegressOptions& o) {
  const training::FeatureStudyOptions options = study_options(o);
  require_room_for_models(o);
  StudyTable table = study_table(o);
  const at::Tensor& values = table.observations.values;
  const at::Tensor target =
      o.target == "synthetic" ? made_target(values, o) : study_target(o.target, table);
  training::require_varying(target, "rows");
  const int64_t rows = values.size(0);
  const int64_t learned =
      std::clamp<int64_t>(std::llround(o.share * static_cast<double>(rows)), 2, rows - 1);
  std::vector<at::Tensor> orders;
  for (int64_t split = 0; split < o.splits; ++split) {
    const auto generator =
        at::make_generator<at::CPUGeneratorImpl>(o.seed + static_cast<uint64_t>(split));
    orders.push_back(at::randperm(rows, generator, at::kLong));
    const at::Tensor first = orders.back().narrow(0, 0, learned);
    training::require_varying(target.index_select(0, first), "rows to learn from");
  }
  StudyLog log(o, table, "regress", {"medae"}, /*lower_is_better=*/true);
  return log.run([&] {
    for (int64_t split = 0; split < o.splits; ++split) {
      const at::Tensor &order = orders[static_cast<size_t>(split)],
                       first = order.narrow(0, 0, learned),
                       second = order.narrow(0, learned, rows - learned);
      training::FeatureStudy study(values.index_select(0, first), values.index_select(0, second),
                                   options);
      const at::Tensor learned_target = target.index_select(0, first),
                       judged_target = target.index_select(0, second);
      log.refer("ridge regression", study, split,
                [&] { return study.regress_linearly(learned_target, judged_target); });
      for (int64_t s = 0; s < o.seeds; ++s) {
        log.compare(study, o.seed + static_cast<uint64_t>(s), split,
                    [&](const std::string& encoding, uint64_t seed, const auto& events) {
                      const training::Scores scores =
                          study.regress(encoding, learned_target, judged_target, seed, events);
                      log.keep(study, table, {}, split, seed);
                      return scores;
                    });
      }
    }
  });
}

}  // namespace

void add_causal_regress(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<RegressOptions>();
  options->seeds = 3;
  options->share = 0.7;
  options->target = "synthetic";
  options->aggregate = "mean";
  CLI::App& command = add_command(
      parent, session,
      {.name = "regress",
       .summary = "Predict a number of each observation, with every encoding of the features",
       .examples = "nsimplex causal regress cells.csv --threads 1 --out runs/regress\n"
                   "nsimplex causal regress methylation.csv --target age.csv --json\n"
                   "nsimplex causal regress --resume runs/regress",
       .resumes = true,
       .inputs = {&options->table, &options->target}},
      options, run_regress);
  add_study_options(command, *options);
  add_feature_options(command, *options);
  const auto add = option_adder(command, "Task");
  add("--target", options->target,
      "A file with a number of each row, or with names of rows and numbers; or synthetic: drawn "
      "columns, bent and multiplied");
  add("--parts", options->parts, "Columns of a synthetic target")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  add("--noise", options->noise, "Of a synthetic target, in its deviations")
      ->check(CLI::NonNegativeNumber);
  add("--splits", options->splits, "Splits of the rows")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  add("--share", options->share, "Of the rows, to learn from")->check(CLI::Range(0.0, 1.0));
  add_save_models(command, *options);
}

}  // namespace nsimplex::cli
