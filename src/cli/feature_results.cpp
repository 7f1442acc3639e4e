#include <fmt/format.h>

#include <algorithm>

#include "cli/feature_experiment.h"
#include "cli/intervals.h"
#include "cli/output.h"
#include "training/statistics.h"

namespace nsimplex::cli {
namespace {

constexpr char kOurs[] = "cape";

double figure_of(const training::Scores& scores, const std::string& figure) {
  const auto found = std::find_if(scores.begin(), scores.end(),
                                  [&](const auto& each) { return each.first == figure; });
  return found == scores.end() ? std::nan("") : found->second;
}

}  // namespace

FeatureResults::FeatureResults(std::string task, std::vector<std::string> figures,
                               bool lower_is_better,
                               std::map<std::string, training::Scores> published)
    : task_(std::move(task)),
      figures_(std::move(figures)),
      lower_is_better_(lower_is_better),
      published_(std::move(published)) {}

void FeatureResults::add(const std::string& encoding, const std::string& trial,
                         const training::Scores& scores) {
  if (trials_.count(encoding) == 0) order_.push_back(encoding);
  trials_[encoding][trial] = scores;
}

std::vector<double> FeatureResults::values(const Trials& trials, const std::string& figure) const {
  std::vector<double> values;
  for (const auto& [trial, scores] : trials) values.push_back(figure_of(scores, figure));
  return values;
}

std::vector<double> FeatureResults::gains(const std::string& encoding,
                                          const std::string& figure) const {
  std::vector<double> gains;
  const auto ours = trials_.find(kOurs);
  if (ours == trials_.end() || encoding == kOurs) return gains;
  const Trials& others = trials_.at(encoding);
  for (const auto& [trial, scores] : ours->second) {
    auto paired = others.find(trial);
    if (paired == others.end()) paired = others.find(trial.substr(0, trial.find('/')));
    if (paired == others.end()) continue;
    const double gain = figure_of(scores, figure) - figure_of(paired->second, figure);
    gains.push_back(lower_is_better_ ? -gain : gain);
  }
  return gains;
}

std::vector<Json> FeatureResults::summary() const {
  std::vector<Json> lines;
  for (const std::string& encoding : order_) {
    Json line = {{"task", task_}, {"encoding", encoding}};
    line["trials"] = trials_.at(encoding).size();
    for (const std::string& figure : figures_) {
      const training::Spread spread = training::spread(values(trials_.at(encoding), figure));
      line[figure] = spread.mean;
      line[figure + "_deviation"] = spread.deviation;
      const std::vector<double> better = gains(encoding, figure);
      if (better.empty()) continue;
      const training::Interval interval = training::confidence_interval(better);
      line["cape_better_by_" + figure] = {interval.mean, interval.low, interval.high};
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string FeatureResults::table(int digits) const {
  if (order_.empty()) return "";
  std::vector<std::string> header{"encoding"};
  for (const std::string& figure : figures_) {
    header.push_back(figure);
    header.push_back("cape better by");
    if (!published_.empty()) header.push_back("paper");
  }
  Table table(header);
  for (const std::string& encoding : order_) {
    std::vector<std::string> row{encoding};
    for (const std::string& figure : figures_) {
      const training::Spread spread = training::spread(values(trials_.at(encoding), figure));
      const std::string mean = fmt::format("{:.{}f}", spread.mean, digits);
      const bool several = trials_.at(encoding).size() > 1;
      row.push_back(several ? fmt::format("{} ± {:.{}f}", mean, spread.deviation, digits) : mean);
      const std::vector<double> better = gains(encoding, figure);
      const auto shown = [&](double value) { return fmt::format("{:+.{}f}", value, digits); };
      row.push_back(better.empty() ? ""
                                   : interval_text(training::confidence_interval(better), shown));
      if (published_.empty()) continue;
      const auto found = published_.find(encoding);
      const double paper =
          found == published_.end() ? std::nan("") : figure_of(found->second, figure);
      row.push_back(std::isnan(paper) ? "" : fmt::format("{:.3f}", paper));
    }
    table.add(std::move(row));
  }
  return table.text();
}

}  // namespace nsimplex::cli
