// The options that all commands share, their help, and the messages for misspelled words.

#include "cli/options.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <sstream>
#include <string_view>
#include <vector>

#include "cli/former_options.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "cli/run_writers.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

// Levenshtein's distance with one row of state.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substitution = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitution, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

// The candidate that `word` was probably meant to be; empty if none is close. Words far longer than
// any name are skipped, since each would cost time that grows with its length.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 100;
  std::string best;
  if (word.size() > kLongest) return best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace

CLI::App& typed_command(CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : typed_command(*parsed.back());
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

std::vector<std::string> option_names(const CLI::App* app) {
  std::vector<std::string> names;
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

std::string with_suggestion(std::string message, const std::string& word,
                            const std::vector<std::string>& candidates, size_t skipped) {
  const std::string suggestion = nearest(word, candidates);
  if (!suggestion.empty()) message += "; did you mean " + suggestion.substr(skipped) + "?";
  return message;
}

namespace {

// Far above any machine, so that a typo does not ask the pool for a billion threads.
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

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); });
}

CLI::App& add_group(CLI::App& parent, const std::string& name, const std::string& summary) {
  CLI::App* group = parent.add_subcommand(name, summary);
  group->require_subcommand(1)->group("Commands");
  return *group;
}

CLI::App& add_bare_command(CLI::App& parent, const CommandText& text, CommonOptions& options) {
  CLI::App& command = *parent.add_subcommand(text.name, text.summary);
  command.group("Commands");
  command.footer("Examples:\n" + indent_lines(text.examples) +
                 "\n\n--config FILE.toml reads options from a file (one name = value per "
                 "line).\nOptions on the command line take precedence.");
  const auto common = [](CLI::Option* option) { option->group("Common options"); };
  if (text.acts.out) {
    common(command.add_option("--out", options.out, "Run directory to write to")->type_name("DIR"));
    common(command
               .add_flag("--overwrite", options.overwrite,
                         "Overwrite an earlier run in --out; its other files stay")
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
               .add_option_function<std::string>("--resume", resume,
                                                 "Continue the run in this folder with its options")
               ->type_name("DIR")
               ->configurable(false));
  }
  if (text.acts.seed) {
    common(command.add_option("--seed", options.seed, "Seed of every random choice")
               ->capture_default_str());
  }
  if (text.acts.threads) {
    common(command.add_option("--threads", options.threads, "CPU threads; 0: torch's default")
               ->check(within(0, kMaxThreads))
               ->capture_default_str());
  }
  if (text.acts.device) {
    CLI::Option* const device =
        command.add_option("--device", options.device, "Device: cpu, cuda, cuda:1");
    common(offer(device, {"cpu", "cuda"})->capture_default_str());
  }
  if (text.acts.log || text.resumes) {
    common(command
               .add_option("--log", options.log,
                           fmt::format("Also hand metrics.jsonl to these: {}",
                                       fmt::join(kRunWriters, ", ")))
               ->delimiter(',')
               ->check(one_of({kRunWriters.begin(), kRunWriters.end()})));
  }
  common(
      command.add_flag("--json", options.json, "Print JSON, one object per line, and no progress"));
  return command;
}

void apply(const CommonOptions& options) {
  const c10::Device device = options.torch_device();
  if (device.is_cuda() && !at::hasCUDA()) {
    throw InputError("--device: expected cpu, since this machine or this torch has no CUDA");
  }
  if (!device.is_cpu() && !device.is_cuda()) {
    throw InputError(
        fmt::format("--device: '{}' is not supported; use cpu or cuda", options.device));
  }
  if (options.threads > 0) at::set_num_threads(options.threads);
  at::manual_seed(options.seed);
}

namespace {

// The input after which the folder of a run without --out is named; empty: it has no folder. The
// writers of --log follow a folder, so a run with them has one.
std::string named_after(const CommonOptions& options, const CommandText& text) {
  const std::string input = text.named_after ? text.named_after() : "";
  if (!input.empty() || options.log.empty()) return input;
  const auto named =
      std::ranges::find_if(text.inputs, [](const std::string* each) { return !each->empty(); });
  return named == text.inputs.end() ? text.name : **named;
}

}  // namespace

int run_command(CommonOptions& options, const CommandText& text, const std::function<int()>& run) {
  if (options.ranks->repeats() && options.overwrite) {
    throw InputError(
        "--overwrite: not with torchrun, which repeats the command after a failure; remove the "
        "folder");
  }
  if (options.resume.empty() && is_repeated(options)) {
    options.repeated = true;
    options.resume = options.out;
  }
  if (options.resume.empty()) {
    refuse_earlier_run(options, text.files);
  } else {
    check_inputs(options);
  }
  const NewRunFolder folder(options, named_after(options, text));
  apply(options);
  const std::unique_ptr<RunWriters> writers = start_writers(options);
  options.writers = writers.get();
  try {
    return run();
  } catch (const Interrupted&) {
    if (options.ranks->writes()) say_how_to_continue(options);
    throw;
  }
}

namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_below(app)) names.push_back(command->get_name());
  return names;
}

// The commands of this name in groups of commands: "lm train".
std::vector<std::string> commands_called(const CLI::App& app, const std::string& word) {
  std::vector<std::string> found;
  for (const CLI::App* group : shown_commands(app)) {
    for (const CLI::App* each : shown_commands(*group)) {
      if (each->get_name() == word) found.push_back(group->get_name() + " " + word);
    }
  }
  return found;
}

std::string describe_unknown(const CLI::App& command, const std::string& word) {
  if (word.size() > 1 && word.front() == '-') {
    const std::string name = word.substr(0, word.find('='));
    const std::string message = "unknown option " + name;
    const std::string same = option_like(command, name.substr(name.find_first_not_of('-')));
    if (!same.empty()) return fmt::format("{}; did you mean {}?", message, same);
    return with_suggestion(message, name, option_names(&command));
  }
  const auto commands = command_names(command);
  if (commands.empty()) return "unexpected argument '" + word + "'";
  const std::string message = "unknown command '" + word + "'";
  const std::vector<std::string> below = commands_called(command, word);
  if (below.empty()) return with_suggestion(message, word, commands);
  return fmt::format("{}; did you mean {}?", message, fmt::join(below, " or "));
}

// Whether `text` has `word` between other characters than letters.
bool has_word(std::string_view text, std::string_view word) {
  const auto letter = [&](size_t i) {
    return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
  };
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !letter(at - 1)) && !letter(at + word.size())) return true;
  }
  return false;
}

// Lines of at most `width` characters, broken between words.
std::string wrapped(const std::string& text, size_t width) {
  std::string lines;
  size_t length = 0;
  for (const std::string& word : CLI::detail::split(text, ' ')) {
    const bool fits = length + 1 + word.size() <= width;
    if (!lines.empty()) lines += fits ? ' ' : '\n';
    length = (lines.empty() || !fits ? 0 : length + 1) + word.size();
    lines += word;
  }
  return lines;
}

}  // namespace

std::string option_text(const CLI::Option& option) {
  std::string value = option.get_default_str();
  constexpr size_t kShort = 8;
  double number = 0;
  if (value.size() > kShort && CLI::detail::lexical_cast(value, number)) {
    value = fmt::format("{:.6g}", number);
  }
  // CLI11 writes the default of a list in brackets.
  if (value.starts_with('[') && value.ends_with(']')) value = value.substr(1, value.size() - 2);
  std::string text = option.get_description();
  const std::vector<std::string> choices = choices_of(option);
  const auto named = [&](const std::string& choice) { return has_word(text, choice); };
  if (!std::ranges::all_of(choices, named)) text += fmt::format(" ({})", fmt::join(choices, ", "));
  return text + (value.empty() ? "" : " [" + value + "]");
}

namespace {

class HelpFormatter : public CLI::Formatter {
 public:
  // Names take the first columns of a line of 100 characters, and their meanings the rest.
  static constexpr size_t kNames = 34, kMeanings = 100 - kNames;

  HelpFormatter() {
    column_width(kNames);
    label("SUBCOMMAND", "COMMAND");
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    return " " + option_value(*option) + (option->get_required() ? " (required)" : "");
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(option_text(*option), kMeanings);
  }

  std::string make_subcommand(const CLI::App* command) const override {
    std::stringstream row;
    CLI::detail::format_help(row, command->get_name(),
                             wrapped(command->get_description(), kMeanings), kNames);
    return row.str();
  }
};

}  // namespace

bool names_unknown_command(CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining(true);
  return !unknown.empty() && !unknown.front().starts_with('-') &&
         !command_names(typed_command(app)).empty();
}

std::string describe_usage_error(CLI::App& app, const CLI::ParseError& error) {
  CLI::App& command = typed_command(app);
  const std::vector<std::string> unknown = app.remaining(true);
  std::string message;
  if (!unknown.empty()) {
    message = describe_unknown(command, unknown.front());
  } else if (!command_names(command).empty()) {
    message = "expected a command:";
    for (const std::string& name : command_names(command)) message += " " + name;
  } else {
    message = plain_error(command, error);
  }
  std::replace(message.begin(), message.end(), '\n', ' ');
  return message + " (see " + full_name(command) + " --help)";
}

std::shared_ptr<CLI::Formatter> help_formatter() { return std::make_shared<HelpFormatter>(); }

}  // namespace nsimplex::cli
