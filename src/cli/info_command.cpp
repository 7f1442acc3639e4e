// The command `info`: versions, devices, operators and the machine.

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nsimplex/version.h>
#include <torch/version.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bench_command.h"
#include "cli/build_facts.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "kernels/cpu/shared/processor.h"
#include "kernels/cpu/shared/simd.h"

namespace nsimplex::cli {
namespace {

struct InfoOptions : CommonOptions {
  bool operators = false;
};

std::vector<std::string> devices() {
  std::vector<std::string> names{"cpu"};
  const auto& cuda = at::detail::getCUDAHooks();
  const int count = cuda.hasCUDA() ? cuda.deviceCount() : 0;
  for (int index = 0; index < count; ++index) names.push_back(fmt::format("cuda:{}", index));
  return names;
}

// Forward operators of this library in torch's dispatcher, sorted.
std::vector<std::string> operators() {
  std::set<std::string> names;
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name.starts_with("nsimplex::")) names.insert(name.name);
  }
  return {names.begin(), names.end()};
}

// The operators' names without "nsimplex::", in columns of at most 100 characters in all.
std::string operator_columns() {
  constexpr size_t kWidth = 100, kGap = 2;
  std::vector<std::string> names = operators();
  size_t column = 0;
  for (std::string& name : names) {
    name.erase(0, std::string_view("nsimplex::").size());
    column = std::max(column, name.size() + kGap);
  }
  const size_t columns = std::max<size_t>(1, (kWidth - kGap) / column);
  const size_t rows = (names.size() + columns - 1) / columns;
  std::string text = fmt::format("\n{} operators in torch.ops.nsimplex:\n", names.size());
  for (size_t row = 0; row < rows; ++row) {
    std::string line;
    for (size_t i = row; i < names.size(); i += rows) {
      line.resize((i / rows) * column, ' ');
      line += names[i];
    }
    text += "  " + line + "\n";
  }
  return text;
}

int run_info(const InfoOptions& options) {
  Json info = build_and_machine();
  info["simd_levels"] = kernels::simd_levels();
  info["devices"] = devices();
  info["operators"] = operators();
  if (options.json) {
    print_json_line("info", info);
    return 0;
  }
  const auto row = [](std::string_view name, std::string_view text) {
    print(fmt::format("{:<12}{}\n", name, text));
  };
  row("version", fmt::format("{}, commit {}", version(), kBuildCommit));
  row("compiler", kBuildCompiler);
  row("torch", TORCH_VERSION);
  const std::string name = kernels::processor_name(), family = kernels::processor_family();
  row("processor", name.empty() ? family : fmt::format("{} ({})", name, family));
  row("SIMD level",
      fmt::format("{} (of {})", kernels::simd_level(), fmt::join(kernels::simd_levels(), ", ")));
  row("threads", std::to_string(at::get_num_threads()));
  row("devices", fmt::format("{}", fmt::join(devices(), ", ")));
  if (options.operators) print(operator_columns());
  return 0;
}

}  // namespace

Json build_and_machine() {
  Json info{{"version", version()},
            {"commit", kBuildCommit},
            {"compiler", kBuildCompiler},
            {"torch", TORCH_VERSION}};
  add_processor(info);
  info["threads"] = at::get_num_threads();
  return info;
}

void add_info_command(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<InfoOptions>();
  CLI::App& command =
      add_command(parent, session,
                  {.name = "info",
                   .summary = "Print version, compiler, processor, SIMD level and devices",
                   .examples = "nsimplex info\n"
                               "nsimplex info --operators\n"
                               "NSIMPLEX_SIMD=AVX2 nsimplex info --json",
                   .acts = {.out = false, .seed = false}},
                  options, run_info);
  command.add_flag("--operators", options->operators,
                   "Also list the operators in torch.ops.nsimplex; --json always has them");
}

}  // namespace nsimplex::cli
