// Assembles the command line, runs the chosen command and turns errors into exit codes.

#include "cli/app.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <nsimplex/version.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/former_options.h"
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

constexpr std::array<std::string_view, 6> kOnRanks{"nsimplex lm train",
                                                   "nsimplex graph train",
                                                   "nsimplex causal task perturb",
                                                   "nsimplex causal task classify",
                                                   "nsimplex causal task cluster",
                                                   "nsimplex causal task regress"};

void add_product_commands(CLI::App& app, Session& session) {
  add_info_command(app, session);
  add_lm_command(app, session);
  add_graph_command(app, session);
  add_analyze_command(app, session);
  add_causal_command(app, session);
  add_bench_command(app, session);
  add_verify_command(app, session);
  add_report_command(app, session);
  add_completion_command(app, session);
  add_man_command(app, session);
}

int fail(training::Ranks& ranks, int code, const std::string& message) {
  if (message.empty() || !ranks.reports(message)) return code;
  // It escapes characters that a terminal would act on.
  log_line(ranks.writes() ? message : fmt::format("rank {}: {}", ranks.rank(), message));
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
int run_action(const std::function<int()>& action, training::Ranks& ranks) {
  try {
    return action();
  } catch (const Interrupted&) {
    return kInterruptedCode;
  } catch (const OutputClosed&) {
    return kFailed;
  } catch (const InputError& error) {
    return fail(ranks, kBadInput, error.what());
  } catch (const c10::Error& error) {
    const std::string_view why = error.what_without_backtrace();
    // PyTorch's allocator of CPU memory puts a source line in front of this message.
    const size_t bytes = why.find("you tried to allocate");
    return fail(ranks, kFailed,
                bytes == why.npos ? std::string(why)
                                  : std::string("out of memory: ").append(why.substr(bytes)));
  } catch (const std::bad_alloc&) {
    return fail(ranks, kFailed, "out of memory");
  } catch (const std::exception& error) {
    return fail(ranks, kFailed, error.what());
  }
}

// What --help and --version ask for. A reader that has seen enough of it is no failure.
int show_help(const CLI::App& app, const CLI::Success& request, training::Ranks& ranks) {
  std::ostringstream text;
  app.exit(request, text, text);
  try {
    print(text.str());
  } catch (const OutputClosed&) {
  } catch (const std::runtime_error& error) {
    return fail(ranks, kFailed, error.what());
  }
  return kSuccess;
}

}  // namespace

const Program kProduct{"nsimplex", "Higher-order attention: train, measure, verify and report.",
                       "Experiments of the papers: nsimplex lab --help", add_product_commands};

std::unique_ptr<CLI::App> make_app(const Program& program, Session& session) {
  auto app = std::make_unique<CLI::App>(program.summary, program.name);
  app->footer(program.footer);
  app->formatter(help_formatter());
  app->set_version_flag("-V,--version", std::string("nsimplex ") + version());
  add_config_option(*app);
  app->add_flag("--json", session.json, "The same as --json after the command");
  app->allow_config_extras(CLI::config_extras_mode::error);
  app->fallthrough();
  app->require_subcommand(1);
  program.add_commands(*app, session);
  describe_values(*app);
  return app;
}

std::vector<std::string> typed_words(int count, char** arguments) {
  std::vector<std::string> words(arguments + 1, arguments + count);
  if (words.empty()) return words;
  if (words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  } else if (words.front() == "version") {
    words.front() = "--version";
  }
  if (const std::string said = use_current_command(words); !said.empty()) log_line(said);
  return words;
}

int run(const Program& program, std::vector<std::string> words, training::Ranks& ranks) {
  reserve_standard_descriptors();
  interrupt::install();
  if (!ranks.writes()) mute();
  Session session;
  session.ranks = &ranks;
  session.command_line = program.name;
  for (const std::string& each : words) session.command_line += " " + quote(each);

  const std::unique_ptr<CLI::App> made = make_app(program, session);
  CLI::App& app = *made;
  try {
    words = with_current_options(app, std::move(words));
    std::ranges::reverse(words);  // CLI11 takes them from the back
    app.parse(std::move(words));
  } catch (const CLI::Success& request) {  // --help, --version
    if (names_unknown_command(app)) {
      return fail(ranks, kBadInput, describe_usage_error(app, request));
    }
    return show_help(app, request, ranks);
  } catch (const CLI::ParseError& error) {
    return fail(ranks, kBadInput, describe_usage_error(app, error));
  } catch (const InputError& error) {
    return fail(ranks, kBadInput, error.what());
  }
  const std::string name = full_name(typed_command(app));
  if (ranks.size() > 1 && std::ranges::find(kOnRanks, name) == kOnRanks.end()) {
    return fail(ranks, kBadInput,
                fmt::format("{}: expected one process, got {} ranks; {} run on several", name,
                            ranks.size(), fmt::join(kOnRanks, ", ")));
  }
  const int code = run_action(session.action, ranks);
  return code == kSuccess && interrupt::requested() ? kInterruptedCode : code;
}

void leave(int code) {
  std::fflush(nullptr);
  std::_Exit(code);
}

void add_graph_command(CLI::App& parent, Session& session) {
  CLI::App& group =
      add_group(parent, "graph", "Use equivariant layers on sets, graphs and hypergraphs");
  add_graph_expressivity(group, session);
  add_graph_train(group, session);
  add_graph_predict(group, session);
}

void add_causal_command(CLI::App& parent, Session& session) {
  CLI::App& group =
      add_group(parent, "causal", "Learn causal graphs from tables and make encodings of them");
  add_causal_check(group, session);
  add_causal_effect(group, session);
  add_causal_embed(group, session);
  add_causal_encode(group, session);
  add_causal_fit(group, session);
  add_causal_simulate(group, session);
  add_causal_task(group, session);
  add_causal_predict(group, session);
}

void add_analyze_command(CLI::App& parent, Session& session) {
  CLI::App& group =
      add_group(parent, "analyze", "Measure properties of trained models and of graphs");
  add_analyze_curvature(group, session);
  add_analyze_model(group, session);
  add_analyze_attention(group, session);
}

}  // namespace nsimplex::cli
