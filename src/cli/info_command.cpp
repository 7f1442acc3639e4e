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
#include <vector>

#include "cli/commands.h"
#include "cli/output.h"
#include "kernels/cpu/shared/simd.h"

namespace nsimplex::cli {
namespace {

struct InfoOptions : CommonOptions {};

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

int run_info(const InfoOptions& options) {
  const Json info{{"version", version()},
                  {"torch", TORCH_VERSION},
                  {"simd", kernels::simd_level()},
                  {"simd_levels", kernels::simd_levels()},
                  {"threads", at::get_num_threads()},
                  {"devices", devices()},
                  {"operators", operators()}};
  if (options.json) {
    print_json_line("info", info);
    return 0;
  }
  for (const auto& [name, value] : info.items()) {
    const std::string text =
        value.is_string() ? value.get<std::string>()
        : value.is_array()
            ? fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), " "))
            : value.dump();
    print(fmt::format("{:<12} {}\n", name, text));
  }
  return 0;
}

}  // namespace

void add_info_command(CLI::App& parent, Session& session) {
  add_command(parent, session,
              {.name = "info",
               .summary = "Print version, SIMD level, threads, devices and operators",
               .examples = "nsimplex info\nNSIMPLEX_SIMD=AVX2 nsimplex info --json",
               .acts = {.out = false, .seed = false}},
              std::make_shared<InfoOptions>(), run_info);
}

}  // namespace nsimplex::cli
