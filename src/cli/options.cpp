#include "cli/options.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/run_folder.h"
#include "cli/run_inputs.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

// Far above any machine: a typo must not ask the pool for a billion threads.
constexpr int kMaxThreads = 4096;

std::string indent_lines(const std::string& text) {
  std::string indented = "  ";
  for (const char c : text) {
    indented += c;
    if (c == '\n') indented += "  ";
  }
  return indented;
}

}  // namespace

c10::Device CommonOptions::torch_device() const {
  try {
    return c10::Device(device);
  } catch (const c10::Error&) {
    throw InputError(fmt::format("--device: unknown device '{}'; use cpu, cuda or cuda:1", device));
  }
}

CLI::App& add_group(CLI::App& parent, const std::string& name, const std::string& summary) {
  CLI::App* group = parent.add_subcommand(name, summary);
  group->require_subcommand(1)->group("Commands");
  return *group;
}

CLI::App& add_bare_command(CLI::App& parent, const CommandText& text, CommonOptions& options) {
  CLI::App& command = *parent.add_subcommand(text.name, text.summary);
  command.group("Commands");
  command.footer(
      "Examples:\n" + indent_lines(text.examples) +
      "\n\n--config FILE.toml reads options from a file (name = value, one a line); what is\n"
      "given on the command line wins.");
  const auto common = [](CLI::Option* option) { option->group("Common options"); };
  if (text.acts.out) {
    common(command.add_option("--out", options.out, "Run directory to write to")->type_name("DIR"));
    common(command
               .add_flag("--overwrite", options.overwrite,
                         "Write over an earlier run in --out; its other files stay")
               ->configurable(false));
  }
  if (text.resumes) {
    options.resumes_by = kConfigFile;
    options.inputs = text.inputs;
    const auto resume = [&command, &options](const std::string& folder) {
      continue_run(command, folder);
      options.resume = options.out = folder;
    };
    common(command
               .add_option_function<std::string>(
                   "--resume", resume, "Continue the run in this folder, with the options it has")
               ->type_name("DIR")
               ->configurable(false));
  }
  if (text.acts.seed) {
    common(command.add_option("--seed", options.seed, "Seed of every random choice")
               ->capture_default_str());
  }
  if (text.acts.threads) {
    common(command.add_option("--threads", options.threads, "CPU threads; 0: torch's own choice")
               ->type_name("N")
               ->check(CLI::Range(0, kMaxThreads))
               ->capture_default_str());
  }
  if (text.acts.device) {
    common(command.add_option("--device", options.device, "Device: cpu, cuda, cuda:1")
               ->capture_default_str());
  }
  common(command.add_flag("--json", options.json,
                          "JSON for machines: one object a line, no progress"));
  return command;
}

void apply(const CommonOptions& options) {
  const c10::Device device = options.torch_device();
  if (device.is_cuda() && !at::hasCUDA()) {
    throw InputError("--device: this machine or this torch has no CUDA; use --device cpu");
  }
  if (!device.is_cpu() && !device.is_cuda()) {
    throw InputError(
        fmt::format("--device: '{}' is not supported; use cpu or cuda", options.device));
  }
  if (options.threads > 0) at::set_num_threads(options.threads);
  at::manual_seed(options.seed);
}

int run_command(const CommonOptions& options, const std::vector<std::string>& files,
                const std::function<int()>& run) {
  if (options.resume.empty()) {
    refuse_earlier_run(options, files);
  } else {
    check_inputs(options);
  }
  apply(options);
  try {
    return run();
  } catch (const Interrupted&) {
    say_how_to_continue(options);
    throw;
  }
}

}  // namespace nsimplex::cli
