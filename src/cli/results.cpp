// Keeps the metrics of compared models over repeated trials, and their differences.

#include "cli/results.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace nsimplex::cli {

double value_of(const training::Scores& scores, const std::string& metric) {
  for (const auto& [name, value] : scores) {
    if (name == metric) return value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void add_scores(Json& line, const training::Scores& scores, const std::string& prefix) {
  for (const auto& [name, value] : scores) line[prefix + name] = value;
}

training::Scores scores_of(const Json& line) {
  training::Scores scores;
  for (const auto& [name, value] : line.items()) {
    const bool metric = name != "seed" && (value.is_number() || value.is_null());
    if (metric) scores.emplace_back(name, value.is_null() ? std::nan("") : value.get<double>());
  }
  return scores;
}

std::map<std::string, training::Scores> published_scores(const char* figures,
                                                         const std::string& command,
                                                         const std::string& table) {
  const Json known = Json::parse(figures).at(command).at("tables");
  std::map<std::string, training::Scores> scores;
  if (!known.contains(table)) return scores;
  for (const auto& [model, line] : known.at(table).items()) scores[model] = scores_of(line);
  return scores;
}

std::string Results::trial_of(uint64_t seed) { return fmt::format("{:020}", seed); }

void Results::add(const std::string& model, const std::string& trial,
                  const training::Scores& scores) {
  if (!has(model)) order_.push_back(model);
  trials_[model][trial] = scores;
}

std::vector<std::string> Results::metrics(const std::string& model) const {
  std::vector<std::string> names;
  for (const auto& each : trials_.at(model).begin()->second) names.push_back(each.first);
  return names;
}

std::vector<double> Results::values(const std::string& model, const std::string& metric) const {
  std::vector<double> values;
  for (const auto& [trial, scores] : trials_.at(model)) values.push_back(value_of(scores, metric));
  return values;
}

training::Spread Results::spread(const std::string& model, const std::string& metric) const {
  return training::spread(values(model, metric));
}

std::vector<double> Results::differences(const std::string& model, const std::string& other,
                                         const std::string& metric) const {
  std::vector<double> differences;
  const auto first = trials_.find(model), second = trials_.find(other);
  if (first == trials_.end() || second == trials_.end()) return differences;
  for (const auto& [trial, scores] : first->second) {
    auto paired = second->second.find(trial);
    if (paired == second->second.end()) {
      paired = second->second.find(trial.substr(0, trial.find('/')));
    }
    if (paired == second->second.end()) continue;
    differences.push_back(value_of(scores, metric) - value_of(paired->second, metric));
  }
  return differences;
}

void Results::write(Json& line, const std::string& model, const std::string& metric,
                    const std::string& key) const {
  const training::Spread of = spread(model, metric);
  line[key] = of.mean;
  line[metric + "_deviation"] = of.deviation;
}

std::string Results::cell(const std::string& model, const std::string& metric, int digits,
                          double scale) const {
  const training::Spread of = spread(model, metric);
  if (std::isnan(of.mean)) return "-";
  const std::string mean = fmt::format("{:.{}f}", scale * of.mean, digits);
  if (trials(model) == 1) return mean;
  return fmt::format("{} ± {:.{}f}", mean, scale * of.deviation, digits);
}

}  // namespace nsimplex::cli
