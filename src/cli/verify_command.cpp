#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "cli/attention_cases.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/json_lines.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/verify_attention.h"
#include "kernels/cpu/simd.h"

namespace nsimplex::cli {
namespace {

struct VerifyOptions : CommonOptions {
  std::vector<std::string> cases;
};

std::vector<NamedCase> chosen_cases(const VerifyOptions& options) {
  if (options.cases.empty()) return verification_cases();
  std::vector<NamedCase> chosen;
  for (const std::string& name : options.cases) chosen.push_back({name, find_case(name)});
  return chosen;
}

// What repeats one case here: the SIMD level that was forced, the threads and the seed belong to
// it.
std::string repeat_command(const VerifyOptions& options, const std::string& name) {
  const char* simd = std::getenv("NSIMPLEX_SIMD");
  std::string command = simd ? fmt::format("NSIMPLEX_SIMD={} ", simd) : "";
  command += fmt::format("nsimplex verify --case {} --seed {}", name, options.seed);
  if (options.threads > 0) command += fmt::format(" --threads {}", options.threads);
  return command;
}

std::string verdict(const CaseResult& result) {
  if (result.passed()) return "ok";
  if (!result.empty_rows_right) return "FAIL: rows without a tuple";
  if (!result.same_bits) return "FAIL: bits differ";
  const Deviation& worse = result.forward.passed() ? result.backward : result.forward;
  return "FAIL: " + worse.tensor;
}

int run_verify(const VerifyOptions& options) {
  const std::vector<NamedCase> cases = chosen_cases(options);
  Table table({"case", "dtype", "forward", "allowed", "gradient", "allowed", "result"});
  std::vector<std::string> failures;
  ProgressBar bar("case", static_cast<int64_t>(cases.size()), options.json);
  int64_t done = 0;
  for (const auto& [name, shape] : cases) {
    if (interrupt::requested()) break;
    bar.update(done, name);
    const CaseResult result = verify_attention(shape, options.seed);
    const std::string command = repeat_command(options, name);
    if (!result.passed()) failures.push_back(command);
    if (options.json) {
      print_json_line("verify", {{"operator", "attention"},
                                 {"case", name},
                                 {"dtype", shape.dtype},
                                 {"passed", result.passed()},
                                 {"forward_error", result.forward.error},
                                 {"forward_limit", result.forward.limit},
                                 {"gradient_error", result.backward.error},
                                 {"gradient_limit", result.backward.limit},
                                 {"empty_rows", result.empty_rows_right},
                                 {"same_bits", result.same_bits},
                                 {"command", command}});
    }
    table.add({name, shape.dtype, fmt::format("{:.1e}", result.forward.error),
               fmt::format("{:.1e}", result.forward.limit),
               fmt::format("{:.1e}", result.backward.error),
               fmt::format("{:.1e}", result.backward.limit), verdict(result)});
    bar.update(++done, name);
  }
  bar.finish();
  if (!options.json) {
    print(table.text());
    print(fmt::format("{} of {} cases passed, SIMD level {}\n",
                      done - static_cast<int64_t>(failures.size()), done, kernels::simd_level()));
    for (const std::string& command : failures) print("repeat: " + command + "\n");
  }
  return failures.empty() ? 0 : 1;
}

}  // namespace

void add_verify_command(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "verify",
       .summary =
           "Every operator against its fp64 oracle on this machine; exit code 1 when one fails",
       .examples = "nsimplex verify\n"
                   "NSIMPLEX_SIMD=AVX2 nsimplex verify --json\n"
                   "nsimplex verify --case order2-window --seed 7",
       .acts = {.out = false}},
      options, run_verify);
  command.add_option("--case", options->cases, "Only these cases of bench/cases")
      ->type_name("NAME");
}

}  // namespace nsimplex::cli
