// Splits a user's table of perturbed rows into learned and unseen interventions.

#include "train/perturbed_rows.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "support/error.h"
#include "support/printable.h"

namespace nsimplex::training {
namespace {

using at::Tensor;
using Targets = std::vector<int64_t>;

// The rows of each intervention by its targets. No targets: the unperturbed rows.
std::map<Targets, std::vector<int64_t>> rows_by_targets(const PerturbedRows& rows) {
  std::map<Targets, std::vector<int64_t>> found;
  for (size_t row = 0; row < rows.targets.size(); ++row) {
    found[rows.targets[row]].push_back(static_cast<int64_t>(row));
  }
  return found;
}

Tensor control_table(const PerturbedRows& rows) {
  const auto found = rows_by_targets(rows);
  const auto control = found.find({});
  const auto count = control == found.end() ? 0 : std::ssize(control->second);
  if (count < 2) {
    throw InputError(fmt::format("expected at least two control rows, got {}", count));
  }
  return rows.table.index_select(0, at::tensor(control->second, at::kLong));
}

// A random part, round(share * size) and at least one, and the rest; both ascending.
std::pair<std::vector<Targets>, std::vector<Targets>> draw_share(const std::vector<Targets>& all,
                                                                 double share,
                                                                 const at::Generator& generator) {
  const auto size = std::ssize(all);
  const int64_t count = std::min<int64_t>(
      size, std::max<int64_t>(1, std::llround(share * static_cast<double>(size))));
  const Tensor order = at::randperm(size, generator, at::kLong);
  std::pair<std::vector<Targets>, std::vector<Targets>> parts;
  for (int64_t place = 0; place < size; ++place) {
    const Targets& each = all[static_cast<size_t>(order[place].item<int64_t>())];
    (place < count ? parts.first : parts.second).push_back(each);
  }
  std::ranges::sort(parts.first);
  std::ranges::sort(parts.second);
  return parts;
}

}  // namespace

PerturbationKinds perturbation_kinds(const PerturbedRows& rows) {
  PerturbationKinds kinds;
  for (const auto& [targets, numbers] : rows_by_targets(rows)) {
    if (targets.empty()) kinds.control_rows = std::ssize(numbers);
    if (targets.size() == 1) kinds.singles.push_back(targets);
    if (targets.size() == 2) kinds.doubles.push_back(targets);
  }
  return kinds;
}

PerturbedRows with_varying_columns(const PerturbedRows& rows, int64_t count) {
  constexpr int64_t kFewest = 4;
  const Tensor control = control_table(rows);
  const PerturbationKinds kinds = perturbation_kinds(rows);
  if (std::ssize(kinds.singles) < kFewest) {
    throw InputError(fmt::format("expected at least {} single perturbations, got {}", kFewest,
                                 kinds.singles.size()));
  }
  const Tensor varies = control.amax(0).ne(control.amin(0));
  std::set<int64_t> kept;
  for (const auto& targets : rows.targets) kept.insert(targets.begin(), targets.end());
  for (const int64_t target : kept) {
    if (varies[target].item<bool>()) continue;
    throw InputError(
        fmt::format("column {} is a target and has the same value in all control rows; leave out "
                    "the rows in which it is perturbed",
                    quoted_name(rows.features[static_cast<size_t>(target)])));
  }
  const Tensor order =
      std::get<1>(control.var(0, /*unbiased=*/false).sort(/*stable=*/true, 0, /*descending=*/true));
  for (int64_t place = 0; place < std::min(count, order.size(0)); ++place) {
    if (varies[order[place]].item<bool>()) kept.insert(order[place].item<int64_t>());
  }

  const std::vector<int64_t> columns(kept.begin(), kept.end());
  PerturbedRows result{.table = rows.table.index_select(1, at::tensor(columns, at::kLong)),
                       .features = {},
                       .targets = rows.targets};
  for (const int64_t column : columns) {
    result.features.push_back(rows.features[static_cast<size_t>(column)]);
  }
  for (auto& targets : result.targets) {
    for (int64_t& target : targets) {
      target = std::ranges::lower_bound(columns, target) - columns.begin();
    }
  }
  return result;
}

PerturbationSplit split_perturbations(const PerturbedRows& rows, double unseen, uint64_t seed) {
  const PerturbationKinds kinds = perturbation_kinds(rows);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  PerturbationSplit split;
  std::tie(split.singles, split.learned) = draw_share(kinds.singles, unseen, generator);
  if (split.learned.empty()) {
    throw InputError(fmt::format(
        "unseen: expected a share that leaves perturbations to learn from, got {}", unseen));
  }
  std::vector<Targets> both_seen;
  for (const Targets& pair : kinds.doubles) {
    const bool seen = std::ranges::all_of(pair, [&](int64_t target) {
      return std::ranges::binary_search(split.learned, Targets{target});
    });
    (seen ? both_seen : split.doubles).push_back(pair);
  }
  if (both_seen.empty()) return split;
  const auto [asked, learned] = draw_share(both_seen, unseen, generator);
  split.doubles.insert(split.doubles.end(), asked.begin(), asked.end());
  split.learned.insert(split.learned.end(), learned.begin(), learned.end());
  std::ranges::sort(split.doubles);
  return split;
}

PerturbationData arrange_perturbations(const PerturbedRows& rows, const PerturbationSplit& split) {
  const Tensor control = control_table(rows);
  const Tensor mean = control.mean(0), deviation = control.std(0, /*unbiased=*/false);
  const auto scaled = [&](const Tensor& values) {
    return ((values - mean) / deviation).to(at::kFloat);
  };
  PerturbationData data{.table = control,
                        .graph = {},
                        .control = scaled(control),
                        .dose = 0.0,
                        .starts = control.size(0)};
  const auto found = rows_by_targets(rows);
  int64_t next = 0;
  const auto arranged = [&](const std::vector<Targets>& all) {
    std::vector<Perturbation> result;
    for (const Targets& targets : all) {
      const std::vector<int64_t>& numbers = found.at(targets);
      const auto count = std::ssize(numbers);
      result.push_back({targets, scaled(rows.table.index_select(0, at::tensor(numbers, at::kLong))),
                        at::arange(next, next + count, at::kLong).remainder(control.size(0))});
      next = (next + count) % control.size(0);
    }
    return result;
  };
  data.learned = arranged(split.learned);
  data.singles = arranged(split.singles);
  data.doubles = arranged(split.doubles);

  double sum = 0.0;
  int64_t count = 0;
  for (const Perturbation& each : data.learned) {
    const Tensor after = each.after.to(at::kDouble).mean(0);
    for (const int64_t target : each.features) {
      sum += after[target].item<double>();
      ++count;
    }
  }
  if (count > 0) data.dose = sum / static_cast<double>(count);
  return data;
}

std::string perturbation_name(const PerturbedRows& rows, const std::vector<int64_t>& targets) {
  std::vector<std::string> names;
  for (const int64_t target : targets) {
    names.push_back(rows.features[static_cast<size_t>(target)]);
  }
  return fmt::format("{}", fmt::join(names, "+"));
}

}  // namespace nsimplex::training
