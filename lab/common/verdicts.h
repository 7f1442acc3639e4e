// Declares tested statements by name, with their counterexamples.

#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analysis/collapse.h"
#include "analysis/statement.h"
#include "cli/output.h"
#include "io/safetensors.h"

namespace nsimplex::cli {

/// Adds the weights of a head for a counterexample: PREFIXkey_weight.0 .. N, PREFIXvalue_weight.1
/// .. N, PREFIXoutput_weight.
inline void add_weights(io::Safetensors& file, const std::string& prefix,
                        const analysis::PureHead& head) {
  for (size_t m = 0; m < head.keys.size(); ++m) {
    file.tensors.push_back({fmt::format("{}key_weight.{}", prefix, m), head.keys[m]});
  }
  for (size_t m = 0; m < head.values.size(); ++m) {
    file.tensors.push_back({fmt::format("{}value_weight.{}", prefix, m + 1), head.values[m]});
  }
  if (head.output) file.tensors.push_back({prefix + "output_weight", *head.output});
}

/// Tested statements by name. The first counterexample of each violated statement is written to
/// disk.
class Verdicts {
 public:
  /// Counterexamples go into this folder, or nowhere if it is empty.
  explicit Verdicts(std::string folder) : folder_(std::move(folder)) {}

  /// Adds one draw to the statement with this name by calling `add`. If it is the first violation,
  /// writes counterexample-K.safetensors.
  void test(const std::string& name, const std::function<io::Safetensors()>& counterexample,
            const std::function<void(analysis::Statement&)>& add);

  std::vector<analysis::Statement> statements() const;

  /// One object per statement: to_json() and `counterexample`, the file's name or null.
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
