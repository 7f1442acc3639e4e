#include "cli/graph_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/output.h"

namespace nsimplex::cli {

using training::GraphResult;
using training::Scores;
using training::Spread;

namespace {

template <class Value>
Spread spread_of(const std::vector<GraphResult>& results, const Value& value) {
  std::vector<double> values;
  for (const GraphResult& each : results) values.push_back(value(each));
  return training::spread(values);
}

double value_of(const Scores& scores, const std::string& name) {
  for (const auto& [each, value] : scores) {
    if (each == name) return value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

Spread spread_of(const std::vector<GraphResult>& results, Scores GraphResult::* scores,
                 const std::string& name) {
  return spread_of(results, [&](const GraphResult& each) { return value_of(each.*scores, name); });
}

}  // namespace

void add_scores(Json& line, const Scores& scores, const std::string& prefix) {
  for (const auto& [name, value] : scores) line[prefix + name] = value;
}

Scores scores_of(const Json& line) {
  Scores scores;
  for (const auto& [name, value] : line.items()) {
    const bool figure = name != "seed" && (value.is_number() || value.is_null());
    if (figure) scores.emplace_back(name, value.is_null() ? std::nan("") : value.get<double>());
  }
  return scores;
}

GraphResult result_of(const Json& line) {
  GraphResult result;
  const auto number = [&](const char* name) {
    const auto found = line.find(name);
    return found != line.end() && found->is_number() ? found->get<double>() : std::nan("");
  };
  for (const auto& [name, value] : scores_of(line)) {
    if (name == "best_epoch") break;  // metrics come first
    const auto behind = [&](const std::string& prefix) { return name.substr(prefix.size()); };
    if (name.starts_with("last_")) {
      result.last_test.emplace_back(behind("last_"), value);
    } else if (name.starts_with("validation_")) {
      result.best.validation.emplace_back(behind("validation_"), value);
    } else {
      result.best_test.emplace_back(name, value);
    }
  }
  result.best.epoch = static_cast<int64_t>(number("best_epoch"));
  result.last.epoch = static_cast<int64_t>(number("epochs"));
  result.last.seconds = number("seconds");
  result.step_seconds = number("step_seconds");
  result.parameters = static_cast<int64_t>(number("parameters"));
  return result;
}

void GraphResults::add(const std::string& arm, const GraphResult& result) {
  results_[arm].push_back(result);
}

void GraphResults::add_reference(const std::string& name, const Scores& scores) {
  references_[name].push_back(scores);
}

std::vector<Json> GraphResults::summary() const {
  std::vector<Json> lines;
  for (const GraphArm& arm : experiment_.arms) {
    const auto found = results_.find(arm.name);
    if (found == results_.end()) continue;
    const Results& results = found->second;
    Json line{{"task", experiment_.task}, {"model", arm.name}, {"seeds", results.size()}};
    const auto add = [&](const std::string& prefix, Scores GraphResult::* scores) {
      for (const auto& [name, value] : results.front().*scores) {
        const Spread of = spread_of(results, scores, name);
        line[prefix + name + "_mean"] = of.mean;
        line[prefix + name + "_deviation"] = of.deviation;
      }
    };
    add("", &GraphResult::best_test);
    add("last_", &GraphResult::last_test);
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

std::vector<std::string> GraphResults::figure_names() const {
  if (!experiment_.shown.empty()) return experiment_.shown;
  Scores scores;
  if (!results_.empty()) {
    scores = results_.begin()->second.front().best_test;
  } else if (!references_.empty()) {
    scores = references_.begin()->second.front();
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : scores) names.push_back(name);
  return names;
}

std::vector<std::string> GraphResults::published_names() const {
  std::vector<std::string> names;
  for (const std::string& name : figure_names()) {
    const auto has = [&](const auto& each) {
      const auto is_it = [&](const auto& score) { return score.first == name; };
      return std::any_of(each.published.begin(), each.published.end(), is_it);
    };
    if (std::any_of(experiment_.arms.begin(), experiment_.arms.end(), has)) names.push_back(name);
  }
  return names;
}

std::string GraphResults::figure(const Spread& of, size_t seeds) const {
  const double scale = experiment_.scale;
  const std::string mean = fmt::format("{:.{}f}", scale * of.mean, experiment_.digits);
  if (seeds == 1) return mean;
  return fmt::format("{} +- {:.{}f}", mean, scale * of.deviation, experiment_.digits);
}

std::vector<std::string> GraphResults::published(const Scores& scores) const {
  std::vector<std::string> cells;
  for (const std::string& name : published_names()) {
    const double value = value_of(scores, name);
    cells.push_back(std::isnan(value) ? "" : figure({value, 0.0}, 1));
  }
  return cells;
}

std::string GraphResults::table() const {
  const std::vector<std::string> names = figure_names();
  if (names.empty() || (results_.empty() && references_.empty())) return "";
  std::vector<std::string> header{"model"};
  header.insert(header.end(), names.begin(), names.end());
  header.push_back("last " + names.front());
  for (const std::string& name : published_names()) header.push_back("paper " + name);
  header.insert(header.end(), {"seeds", "epochs", "parameters", "seconds"});
  Table table(header);
  for (const auto& [name, all] : references_) {
    std::vector<std::string> row{name};
    for (const std::string& figure_name : names) {
      std::vector<double> values;
      for (const Scores& scores : all) values.push_back(value_of(scores, figure_name));
      row.push_back(figure(training::spread(values), values.size()));
    }
    table.add(row);
  }
  for (const GraphArm& arm : experiment_.arms) {
    const auto found = results_.find(arm.name);
    if (found != results_.end()) table.add(row(arm, found->second, names));
  }
  for (const PublishedScores& each : experiment_.published) {
    std::vector<std::string> row{each.name + " (paper)"};
    row.resize(2 + names.size());
    for (std::string& cell : published(each.scores)) row.push_back(std::move(cell));
    table.add(row);
  }
  return table.text();
}

std::vector<std::string> GraphResults::row(const GraphArm& arm, const Results& results,
                                           const std::vector<std::string>& names) const {
  std::vector<std::string> row{arm.name};
  const auto add = [&](Scores GraphResult::* scores, const std::string& name) {
    row.push_back(figure(spread_of(results, scores, name), results.size()));
  };
  for (const std::string& name : names) add(&GraphResult::best_test, name);
  add(&GraphResult::last_test, names.front());
  for (std::string& cell : published(arm.published)) row.push_back(std::move(cell));
  const auto mean = [&](const auto& value) { return spread_of(results, value).mean; };
  row.push_back(fmt::format("{}", results.size()));
  row.push_back(fmt::format("{:.4g}", mean([](const GraphResult& each) {
                              return static_cast<double>(each.last.epoch);
                            })));
  row.push_back(fmt::format("{}", results.front().parameters));
  row.push_back(
      fmt::format("{:.1f}", mean([](const GraphResult& each) { return each.last.seconds; })));
  return row;
}

}  // namespace nsimplex::cli
