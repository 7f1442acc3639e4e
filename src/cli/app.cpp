#include "cli/app.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <malloc.h>
#include <nsimplex/version.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>

#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/options.h"
#include "cli/output.h"
#include "support/error.h"
#include "support/log.h"

namespace nsimplex::cli {

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TRIM_THRESHOLD, -1);  // never
#endif
  setenv("THP_MEM_ALLOC_ENABLE", "1", /*overwrite=*/0);  // PyTorch's setting
}

namespace {

constexpr int kSuccess = 0, kFailed = 1, kBadInput = 2;

void add_product_commands(CLI::App& app, Session& session) {
  add_info_command(app, session);
  add_lm_command(app, session);
  add_graph_command(app, session);
  add_analyze_command(app, session);
  add_causal_command(app, session);
  add_bench_command(app, session);
  add_verify_command(app, session);
  add_report_command(app, session);
}

int fail(int code, std::string_view message) {
  log_line(message);  // it escapes characters that a terminal would act on
  return code;
}

// Quotes an argument for a shell, on one line for any contents.
std::string quote(const std::string& argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,.:/@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) return argument;
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  if (std::ranges::any_of(argument, control)) {
    std::string quoted = "$'";
    for (const char c : argument) {
      const auto byte = static_cast<unsigned char>(c);
      if (control(byte)) {
        quoted += fmt::format("\\x{:02x}", byte);
      } else {
        quoted += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
      }
    }
    return quoted + "'";
  }
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Runs the command and turns exceptions into one line and an exit code.
int run_action(const std::function<int()>& action) {
  try {
    return action();
  } catch (const Interrupted&) {
    return kInterruptedCode;
  } catch (const OutputClosed&) {
    return kFailed;
  } catch (const InputError& error) {
    return fail(kBadInput, error.what());
  } catch (const c10::Error& error) {
    const std::string_view why = error.what_without_backtrace();
    // PyTorch's allocator of CPU memory puts a source line in front of this message.
    const size_t bytes = why.find("you tried to allocate");
    return fail(kFailed, bytes == why.npos
                             ? std::string(why)
                             : std::string("out of memory: ").append(why.substr(bytes)));
  } catch (const std::bad_alloc&) {
    return fail(kFailed, "out of memory");
  } catch (const std::exception& error) {
    return fail(kFailed, error.what());
  }
}

}  // namespace

const Program kProduct{"nsimplex", "Higher-order attention: train, measure, verify and report.",
                       "Experiments of the papers: nsimplex lab --help", add_product_commands};

std::unique_ptr<CLI::App> make_app(const Program& program, Session& session) {
  auto app = std::make_unique<CLI::App>(program.summary, program.name);
  app->footer(program.footer);
  app->formatter(help_formatter());
  app->config_formatter(command_config(*app));
  app->set_version_flag("--version", std::string("nsimplex ") + version());
  app->set_config("--config", "", "Read options from a TOML file")->type_name("FILE");
  app->allow_config_extras(CLI::config_extras_mode::error);
  app->fallthrough();
  app->require_subcommand(1);
  program.add_commands(*app, session);
  return app;
}

int run(const Program& program, std::span<char* const> arguments) {
  interrupt::install();
  Session session;
  session.command_line = program.name;
  for (const char* each : arguments.subspan(1)) session.command_line += " " + quote(each);

  const std::unique_ptr<CLI::App> made = make_app(program, session);
  CLI::App& app = *made;
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    return fail(kBadInput, describe_usage_error(app, error));
  }
  const int code = run_action(session.action);
  return code == kSuccess && interrupt::requested() ? kInterruptedCode : code;
}

void add_graph_command(CLI::App& parent, Session& session) {
  CLI::App& group =
      add_group(parent, "graph", "Use equivariant layers on sets, graphs and hypergraphs");
  add_graph_expressivity(group, session);
  add_graph_hyperedges(group, session);
  add_graph_molecules(group, session);
}

void add_causal_command(CLI::App& parent, Session& session) {
  CLI::App& group =
      add_group(parent, "causal", "Learn causal graphs from tables and make encodings of them");
  add_causal_embed(group, session);
  add_causal_encode(group, session);
  add_causal_fit(group, session);
  add_causal_simulate(group, session);
  add_causal_perturb(group, session);
  add_causal_classify(group, session);
  add_causal_cluster(group, session);
  add_causal_regress(group, session);
  add_causal_predict(group, session);
}

void add_analyze_command(CLI::App& parent, Session& session) {
  CLI::App& group =
      add_group(parent, "analyze", "Measure properties of trained models and of graphs");
  add_analyze_curvature(group, session);
  add_analyze_model(group, session);
}

}  // namespace nsimplex::cli
