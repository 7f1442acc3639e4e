// Collects tested statements and writes the first counterexample of each to disk.

#include "lab/common/verdicts.h"

#include <fmt/format.h>

#include "cli/output.h"

namespace nsimplex::cli {

using analysis::Statement;

void Verdicts::test(const std::string& name, const std::function<io::Safetensors()>& counterexample,
                    const std::function<void(Statement&)>& add) {
  Tested& tested = tested_.try_emplace(name, Tested{Statement(name), ""}).first->second;
  const bool held = tested.statement.violations() == 0;
  add(tested.statement);
  if (folder_.empty() || !held || tested.statement.violations() == 0) return;
  tested.file = fmt::format("counterexample-{}.safetensors", ++saved_);
  io::write_safetensors(folder_ + "/" + tested.file, counterexample());
}

std::vector<Statement> Verdicts::statements() const {
  std::vector<Statement> statements;
  for (const auto& each : tested_) statements.push_back(each.second.statement);
  return statements;
}

std::vector<Json> Verdicts::lines() const {
  std::vector<Json> lines;
  for (const auto& each : tested_) {
    lines.push_back(to_json(each.second.statement));
    lines.back()["counterexample"] = each.second.file.empty() ? Json() : Json(each.second.file);
  }
  return lines;
}

}  // namespace nsimplex::cli
