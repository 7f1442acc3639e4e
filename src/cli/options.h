// Declares the options that all commands share, and adds a command with its options to a program.

#pragma once

#include <c10/core/Device.h>
#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "cli/cli11.h"
#include "cli/config_file.h"
#include "cli/option_values.h"
#include "support/names.h"
#include "train/ranks.h"

namespace nsimplex::cli {

/// The command that was typed, as far as it could be parsed.
CLI::App& typed_command(CLI::App& app);

/// "nsimplex lm train"
std::string full_name(const CLI::App& command);

/// Names of options of a command and of those above it: "--steps".
std::vector<std::string> option_names(const CLI::App* app);

/// The meaning of an option, with its choices if it does not name them, and its default.
std::string option_text(const CLI::Option& option);

/// `message`, with a suggestion if one of `candidates` is close to `word`. The suggestion is shown
/// without its first `skipped` letters.
std::string with_suggestion(std::string message, const std::string& word,
                            const std::vector<std::string>& candidates, size_t skipped = 0);

class RunWriters;

/// Options that commands share; the options of a command derive from this. A command offers only
/// those that have an effect in it.
struct CommonOptions {
  std::string out;          ///< run directory; empty: nothing is written
  bool out_is_new = false;  ///< --out was not given, and the command made the folder
  bool overwrite = false;   ///< an earlier run in it may be overwritten
  std::string resume;       ///< the run directory of a run to continue; empty: a new run
  bool repeated = false;    ///< --resume was not given, but a launcher repeats the command
  uint64_t seed = 1;
  int threads = 0;  ///< 0: torch's default
  std::string device = "cpu";
  bool json = false;             ///< JSON lines on standard output, no progress
  std::vector<std::string> log;  ///< writers that get metrics.jsonl, too

  // The framework fills these in before the command runs.
  std::string command_name;  ///< for example nsimplex lab chains
  std::string resumes_by;    ///< the file that a run needs to continue; empty: no run can
  std::vector<const std::string*> inputs;  ///< CommandText::inputs
  std::string command_line;                ///< the typed command, to repeat it
  std::string config_toml;                 ///< every option of the command, as --config reads it
  training::Ranks* ranks = &training::only_rank();  ///< the processes that run the command together
  RunWriters* writers = nullptr;                    ///< those of --log, while the command runs

  c10::Device torch_device() const;

  /// The run directory; empty: nothing is written.
  const std::string& folder() const { return resume.empty() ? out : resume; }
};

/// The command to run. It runs after parsing, so that an error of the run is never reported as an
/// error of usage.
struct Session {
  std::string command_line;
  bool json = false;  ///< --json came before the command
  training::Ranks* ranks = &training::only_rank();
  std::function<int()> action;
};

/// Which of the common options have an effect in a command. The others are not offered.
struct ActingOptions {
  bool out = true, seed = true, threads = true, device = false, log = false;
};

struct CommandText {
  std::string name;
  std::string summary;   ///< one line
  std::string examples;  ///< one command per line, shown by --help
  ActingOptions acts = {};

  /// Whether it has --resume: it reads config.toml of a run and skips work that metrics.jsonl has.
  bool resumes = false;

  /// Options that name files to read, or are empty or other words, of a command that resumes. The
  /// run folder records the state of the files, and the run continues only with the same files.
  std::vector<const std::string*> inputs = {};

  /// The files that it writes into --out besides config.toml and metrics.jsonl.
  std::vector<std::string> files = {};

  /// The input after which a run is named if --out is not given: then it goes to a new folder in
  /// runs. Absent, or no text: then nothing is written without --log.
  std::function<std::string()> named_after = {};
};

/// Adds a command with its help and its common options, with the values of `options` as defaults.
CLI::App& add_bare_command(CLI::App& parent, const CommandText& text, CommonOptions& options);

/// Applies the device, the seed and the thread count of `options` to this process.
void apply(const CommonOptions& options);

/// Throws InputError if --out names a folder with parts of an earlier run that a new run would
/// overwrite: lines in metrics.jsonl, config.toml of another run, or one of `files`, which are
/// further outputs of the command. --overwrite permits it.
void refuse_earlier_run(const CommonOptions& options, const std::vector<std::string>& files);

/// Runs a command with its options. If it is interrupted and can continue, standard error says how.
int run_command(CommonOptions& options, const CommandText& text, const std::function<int()>& run);

/// Adds a command whose `run` returns the exit code. Add its own options to the returned CLI::App.
template <class Options>
CLI::App& add_command(CLI::App& parent, Session& session, const CommandText& text,
                      std::shared_ptr<Options> options, int (*run)(const Options&)) {
  CLI::App& command = add_bare_command(parent, text, *options);
  command.callback([&session, &command, options, run, text] {
    options->command_name = full_name(command);
    options->command_line = session.command_line;
    if (session.json && !options->json) {
      options->json = true;
      command.get_option("--json")->add_result("true");  // config.toml says it too
    }
    options->config_toml = config_text(command);
    options->ranks = session.ranks;
    session.action = [options, run, text] {
      return run_command(*options, text, [&] { return run(*options); });
    };
  });
  return command;
}

/// Adds an argument that must be given. A config file may have its name in small letters, which some
/// had in earlier versions.
template <class Value>
void add_argument(CLI::App& command, const std::string& name, Value& value,
                  const std::string& text) {
  command.add_option(name, value, text)->required()->type_name("")->ignore_case();
}

template <class Value>
inline constexpr bool is_optional = false;
template <class Value>
inline constexpr bool is_optional<std::optional<Value>> = true;

/// add(name, value, text): an option of `command`, in a group of its help. Its type follows from that
/// of the value: a bool is a flag, an enum is one of its names, and an std::optional shows no default.
inline auto option_adder(CLI::App& command, const std::string& group) {
  return [&command, group](const std::string& name, auto& value, const std::string& text) {
    using Value = std::remove_cvref_t<decltype(value)>;
    CLI::Option* option = nullptr;
    if constexpr (std::is_same_v<Value, bool>) {
      option = command.add_flag(name, value, text);
    } else if constexpr (std::is_enum_v<Value>) {
      const auto set = [&value, name](const std::string& word) {
        value = parse_name<Value>(name, word);
      };
      option = command.add_option_function<std::string>(name, set, text);
      option->check(one_of(names_of<Value>()))->default_str(std::string(name_of(value)));
    } else {
      option = command.add_option(name, value, text);
      if constexpr (!is_optional<Value>) option->capture_default_str();
    }
    // CLI11 shortens numbers to six digits; config.toml has all digits.
    if constexpr (std::floating_point<Value>) option->default_str(fmt::format("{}", value));
    return option->group(group);
  };
}

/// The commands of a program or a group that its help shows.
std::vector<const CLI::App*> shown_commands(const CLI::App& app);

/// Adds a command that only holds other commands.
CLI::App& add_group(CLI::App& parent, const std::string& name, const std::string& summary);

/// Whether the word after a group of commands is an unknown command.
bool names_unknown_command(CLI::App& app);

/// One line about a command line that could not be parsed. An unknown option or command is named
/// first, with the nearest known one.
std::string describe_usage_error(CLI::App& app, const CLI::ParseError& error);

/// Help with the default after the description, so that the columns stay short.
std::shared_ptr<CLI::Formatter> help_formatter();

}  // namespace nsimplex::cli
