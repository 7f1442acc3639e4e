// Reads a user's table with the interventions of each row for `causal task perturb`.

#include "cli/perturbed_table.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <unordered_map>

#include "data/observations.h"
#include "data/row_texts.h"
#include "io/input_file.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/table.h"
#include "support/error.h"

namespace nsimplex::cli {

void add_perturbed_table_options(CLI::App& command, PerturbedTableOptions& o) {
  command
      .add_option("TABLE", o.path,
                  "Observations in rows, perturbed and unperturbed: csv or another text, npy, npz; "
                  "default: simulated tables")
      ->type_name("");
  const auto add = option_adder(command, "Table");
  command
      .add_option("--perturbations", o.perturbations,
                  "Perturbation of each row of TABLE: a csv or tsv with one label per row or with "
                  "names of rows and labels, or the name of a column of TABLE. A label is control, "
                  "a column or two columns, A+B")
      ->type_name("FILE|COLUMN")
      ->group("Table");
  command
      .add_option("--control", o.control,
                  "Label of the unperturbed rows; default: control, ctrl and "
                  "non-targeting")
      ->type_name("NAME")
      ->group("Table");
  command
      .add_flag("--counts", o.counts,
                "The values are counts of cells: remove rows with fewer than 200 nonzero values, "
                "scale sums to 1e4, then log(1 + x)")
      ->group("Table");
  add("--columns", o.columns,
      "Use only the most variable columns of the control rows, and all targets")
      ->check(within(int64_t{1}, int64_t{1} << 30));
  add("--key", o.key, "Array to read from an npz with several")->type_name("NAME");
  add_text_options(command, o.text, /*table=*/true);
}

void check_without_table(const PerturbedTableOptions& o) {
  const auto refuse = [](bool given, const char* option) {
    if (given) throw InputError(fmt::format("{}: expected a TABLE for this option", option));
  };
  refuse(!o.perturbations.empty(), "--perturbations");
  refuse(!o.control.empty(), "--control");
  refuse(o.counts, "--counts");
  refuse(!o.key.empty(), "--key");
}

namespace {

// The label of each row and its line.
struct PerturbationTexts {
  std::string path;
  data::RowTexts texts;
};

std::string_view without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

class TargetReader {
 public:
  TargetReader(const std::vector<std::string>& features, const std::string& control)
      : controls_(control.empty() ? std::vector<std::string>{"control", "ctrl", "non-targeting"}
                                  : std::vector<std::string>{control}) {
    for (size_t column = 0; column < features.size(); ++column) {
      columns_.emplace(features[column], static_cast<int64_t>(column));
    }
  }

  // The columns of a label, ascending. Throws the reason if it has none.
  std::vector<int64_t> targets_of(const std::string& label) {
    const auto [known, added] = known_.try_emplace(label);
    if (added) known->second = parse(label);
    return known->second;
  }

 private:
  bool is_control(std::string_view text) const {
    return std::ranges::find(controls_, text) != controls_.end();
  }

  std::vector<int64_t> parse(const std::string& label) const {
    if (is_control(label)) return {};
    // A column's name may contain a plus.
    if (const auto whole = columns_.find(label); whole != columns_.end()) return {whole->second};
    std::vector<int64_t> targets;
    for (size_t begin = 0; begin <= label.size();) {
      const size_t end = std::min(label.find('+', begin), label.size());
      const std::string part(without_blanks(std::string_view(label).substr(begin, end - begin)));
      begin = end + 1;
      if (is_control(part)) continue;
      const auto column = columns_.find(part);
      if (column == columns_.end()) {
        throw InputError(
            fmt::format("no column is called {}; expected a column, two columns joined by +, or {}",
                        quoted_name(part), fmt::join(controls_, ", ")));
      }
      targets.push_back(column->second);
    }
    std::ranges::sort(targets);
    if (targets.size() > 2 || std::ranges::adjacent_find(targets) != targets.end()) {
      throw InputError(
          fmt::format("expected one column or two different ones, got {}", quoted_name(label)));
    }
    return targets;
  }

  std::vector<std::string> controls_;
  std::unordered_map<std::string, int64_t> columns_;
  std::unordered_map<std::string, std::vector<int64_t>> known_;
};

// The labels in a column of the table; absent if no column has this name.
std::optional<data::RowTexts> column_texts(const io::Source& source, io::TextOptions text,
                                           const std::string& column) {
  if (source.starts_with(io::kNpyMagic) || source.starts_with(io::kZipMagic)) return std::nullopt;
  text.use.clear();
  text.leave_out.clear();
  const io::TextGrid grid(source, text);
  const auto found = std::ranges::find(grid.names(), column);
  if (found == grid.names().end()) return std::nullopt;
  const auto number = found - grid.names().begin();
  data::RowTexts result;
  result.reading.text = true;
  for (int64_t row = 0; row < grid.rows(); ++row) {
    result.texts.emplace_back(grid.at(row, number));
    result.lines.push_back(grid.line(row));
    if (result.texts.back().empty()) grid.fail_at(row, number, "expected a label, got nothing");
  }
  return result;
}

bool is_file(const std::string& path) {
  std::error_code error;
  if (path == "-") return true;  // standard input
  return std::filesystem::exists(path, error) && !std::filesystem::is_directory(path, error);
}

// Names must differ, since a label must name exactly one column.
void require_different(const std::vector<std::string>& features, const std::string& path) {
  std::vector<std::string> names = features;
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return;
  throw InputError(fmt::format("cannot use {}: expected columns of different names, got {} twice",
                               path, quoted_name(*twice)));
}

std::string count_of(int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

PerturbedTable read_perturbed_table(const PerturbedTableOptions& o) {
  if (o.perturbations.empty()) {
    throw InputError(
        "--perturbations: expected the perturbation of each row of TABLE, got nothing");
  }
  const io::FileBytes file(o.path);
  const io::Source source{o.path, file.bytes()};
  io::TableOptions reading{.text = text_options(o.text), .allow_missing = false, .key = o.key};
  PerturbationTexts labels{.path = o.perturbations, .texts = {}};
  const bool joined = is_file(o.perturbations);
  if (!joined) {
    auto texts = column_texts(source, reading.text, o.perturbations);
    if (!texts) {
      throw InputError(fmt::format("--perturbations: expected a file or a column of {}, got {}",
                                   o.path, quoted_name(o.perturbations)));
    }
    labels = {.path = o.path, .texts = std::move(*texts)};
    reading.text.leave_out.push_back(o.perturbations);
  }
  PerturbedTable result;
  data::Observations observations = data::observations_of(io::parse_table(source, reading));
  require_different(observations.features, o.path);
  say_reading(o.text, o.path,
              size_of_table(observations.values.size(0), observations.values.size(1)),
              observations.reading, o.key);
  result.read["table"] = to_json(observations.reading);
  if (joined) {
    const io::FileBytes label_file(o.perturbations);
    labels.texts = data::read_row_texts({o.perturbations, label_file.bytes()}, observations,
                                        "label", /*numbers=*/false);
    result.read["perturbations"] = to_json(labels.texts.reading);
  }

  TargetReader reader(observations.features, o.control);
  std::vector<std::vector<int64_t>> targets;
  for (size_t row = 0; row < labels.texts.texts.size(); ++row) {
    try {
      targets.push_back(reader.targets_of(labels.texts.texts[row]));
    } catch (const InputError& error) {
      throw InputError(fmt::format("cannot read {}: line {}: {}", labels.path,
                                   labels.texts.lines[row], error.what()));
    }
  }
  std::vector<std::vector<int64_t>> kept = targets;
  if (o.counts) {
    const at::Tensor rows = data::normalise_counts(observations);
    kept.clear();
    for (int64_t row = 0; row < rows.size(0); ++row) {
      kept.push_back(targets[static_cast<size_t>(rows[row].item<int64_t>())]);
    }
  }
  try {
    result.rows = training::with_varying_columns({.table = observations.values,
                                                  .features = observations.features,
                                                  .targets = std::move(kept)},
                                                 o.columns);
  } catch (const InputError& error) {
    throw InputError(fmt::format("cannot use {}: {}", labels.path, error.what()));
  }
  result.kinds = training::perturbation_kinds(result.rows);
  say_reading(joined ? o.perturbations : fmt::format("column {} of {}", o.perturbations, o.path),
              fmt::format("{}, {} and {}", count_of(result.kinds.control_rows, "control row"),
                          count_of(std::ssize(result.kinds.singles), "single perturbation"),
                          count_of(std::ssize(result.kinds.doubles), "double one")),
              labels.texts.reading);
  return result;
}

}  // namespace nsimplex::cli
