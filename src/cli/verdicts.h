#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analysis/statement.h"
#include "cli/json_lines.h"
#include "io/safetensors.h"

namespace nsimplex::cli {

/// Statements put to the test, by name. Of each that is violated the first counterexample goes to
/// disk.
class Verdicts {
 public:
  /// Counterexamples go into this folder; nowhere if it is empty.
  explicit Verdicts(std::string folder) : folder_(std::move(folder)) {}

  /// Adds one draw to the statement of this name, with `add`; where it is the first that violates
  /// it, writes counterexample-K.safetensors.
  void test(const std::string& name, const std::function<io::Safetensors()>& counterexample,
            const std::function<void(analysis::Statement&)>& add);

  std::vector<analysis::Statement> statements() const;

  /// One object a statement: to_json() and `counterexample`, the file's name or null.
  std::vector<Json> lines() const;

 private:
  struct Tested {
    analysis::Statement statement;
    std::string file;
  };

  std::string folder_;
  std::map<std::string, Tested> tested_;
  int saved_ = 0;
};

}  // namespace nsimplex::cli
