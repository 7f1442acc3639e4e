// Reads and writes the options of a command as a TOML file.

#include "cli/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>

#include "cli/former_options.h"
#include "cli/options.h"
#include "cli/run_folder.h"
#include "cli/toml.h"
#include "io/input_file.h"
#include "support/error.h"
#include "support/printable.h"

namespace nsimplex::cli {
namespace {

// CLI11 opens the file of --config itself and rejects names that are not files, so `-` becomes this
// one on the way to it.
constexpr const char* kStandardInput = "/dev/stdin";

// The option or argument with that name, which may be a former one. For an unknown name it suggests
// a similar one.
CLI::Option& option_of(CLI::App& command, const std::string& name) {
  const std::string now = current_option(command, name);
  CLI::Option* option = command.get_option_no_throw("--" + now);
  if (option == nullptr) option = command.get_option_no_throw(now);
  if (option != nullptr && option->get_configurable()) return *option;
  const bool plain = name.size() < 40 && std::ranges::all_of(name, [](char c) { return c > ' '; });
  const std::string shown = plain ? "'" + name + "'" : quoted_name(name);
  const std::string message = fmt::format("unknown name {} in the config file", shown);
  throw InputError(option != nullptr
                       ? fmt::format("'{}' is given on the command line only", name)
                       : with_suggestion(message, "--" + name, option_names(&command), 2));
}

// On the command line CLI11 splits lists at commas and texts in brackets. The file is already
// split, so a member is passed on unchanged.
void add_members(CLI::Option& option, const std::vector<std::string>& members) {
  const char delimiter = option.get_delimiter();
  const bool brackets = option.get_allow_extra_args();
  option.delimiter('\0')->allow_extra_args(false);
  for (const std::string& member : members) option.add_result(member);
  option.delimiter(delimiter)->allow_extra_args(brackets);
}

void set_option(CLI::Option& option, const TomlEntry& entry) {
  if (!option.empty()) return;  // the command line wins
  if (entry.list && !is_list(option)) {
    throw InputError(fmt::format("{}: expected one value, got a list", entry.name));
  }
  if (is_flag(option)) {
    option.add_result(option.get_flag_value(entry.name, entry.values.front()));
  } else if (entry.values.empty()) {
    option.add_result("{}");  // CLI11's form of an empty list
  } else {
    add_members(option, entry.values);
  }
  option.run_callback();
}

class CommandConfig : public CLI::ConfigTOML {
 public:
  explicit CommandConfig(CLI::App& app) : app_(app) {}

  // Sets the options itself, since CLI11 would split the texts again, and returns nothing to it.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::vector<const CLI::Option*> known;
    CLI::App& command = typed_command(app_);
    int64_t line = 0;
    try {
      // Standard input can be read only once, and io keeps what came.
      const std::string text = file() == kStandardInput
                                   ? io::read_text("-")
                                   : std::string(std::istreambuf_iterator<char>(input), {});
      for (const TomlEntry& entry : parse_toml(text)) {
        line = entry.line;
        CLI::Option& option = option_of(command, entry.name);
        if (std::ranges::find(known, &option) != known.end()) {
          throw InputError(fmt::format("'{}' is given twice", entry.name));
        }
        known.push_back(&option);
        set_option(option, entry);
      }
    } catch (const InputError& error) {
      fail(line, error.what());
    } catch (const CLI::ParseError& error) {
      fail(line, plain_error(command, error));
    }
    return {};
  }

 private:
  std::string file() const { return app_.get_config_ptr()->as<std::string>(); }

  [[noreturn]] void fail(int64_t line, std::string_view what) const {
    const std::string name = file() == kStandardInput ? "standard input" : file();
    const std::string place = line == 0 ? "" : fmt::format("line {}: ", line);
    throw CLI::ConfigError(fmt::format("--config: {}, {}{}", name, place, what),
                           CLI::ExitCodes::ConfigError);
  }

  CLI::App& app_;
};

// The default of an option as values. CLI11 shows a list as [1,2].
std::vector<std::string> default_values(const CLI::Option& option) {
  std::string text = option.get_default_str();
  if (text.empty()) return is_flag(option) ? CLI::results_t{"false"} : CLI::results_t{};
  if (!is_list(option)) return {text};
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  return text.empty() ? CLI::results_t{} : CLI::detail::split(text, ',');
}

bool same_value(const std::string& a, const std::string& b) {
  double first = 0, second = 0;
  return a == b || (CLI::detail::lexical_cast(a, first) && CLI::detail::lexical_cast(b, second) &&
                    first == second);
}

// A run that continues must compute the same results, so other options are refused.
void refuse_other_options(const CLI::App& command, const std::vector<TomlEntry>& entries) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_single_name();
    if (option->count() == 0 || is_of_this_call(name)) continue;
    if (name == "out" || name == "overwrite") {
      throw InputError(fmt::format("{} cannot be given as well: a run continues in its own folder",
                                   option->get_name()));
    }
    const auto entry = std::ranges::find_if(
        entries, [&](const TomlEntry& each) { return current_option(command, each.name) == name; });
    const CLI::results_t& given = option->results();
    if (entry != entries.end() && std::ranges::equal(given, entry->values, same_value)) continue;
    const std::string had = entry == entries.end()
                                ? "without it"
                                : fmt::format("with {}", fmt::join(entry->values, ","));
    throw InputError(fmt::format("the run began {} as {}, got {}; it continues as it began", had,
                                 option->get_name(), fmt::join(given, ",")));
  }
}

}  // namespace

bool is_command(const std::string& name, const std::string& config) {
  std::istringstream typed(config.substr(0, config.find('\n'))), words(name);
  std::vector<std::string> line{std::istream_iterator<std::string>(typed), {}};
  if (line.empty() || line.front() != "#") return false;
  use_current_command(line, /*from=*/2);
  // Options may stand between the words of a name.
  auto place = line.begin() + 1;
  for (std::string wanted; words >> wanted; ++place) {
    place = std::find(place, line.end(), wanted);
    if (place == line.end()) return false;
  }
  return true;
}

bool is_of_this_call(const std::string& option) {
  static const std::set<std::string> kOfThisCall = {"resume", "threads", "device",
                                                    "json",   "log",     "help"};
  return kOfThisCall.contains(option);
}

void continue_run(CLI::App& command, const std::string& folder) {
  const auto path = (std::filesystem::path(folder) / kConfigFile).string();
  try {
    if (folder.empty()) throw InputError("expected the folder of a run, got an empty name");
    if (std::filesystem::is_directory(folder) && !std::filesystem::exists(path)) {
      throw InputError(fmt::format("{} has no {}; start the run with --out", folder, kConfigFile));
    }
    const std::string text = io::read_text(path);
    if (!is_command(full_name(command), text)) {
      throw InputError(fmt::format("the run in {} is not a run of {}", folder, full_name(command)));
    }
    const std::vector<TomlEntry> entries = parse_toml(text);
    refuse_other_options(command, entries);
    for (const TomlEntry& entry : entries) {
      if (entry.name == "out" || entry.name == "json") continue;
      set_option(option_of(command, entry.name), entry);
    }
  } catch (const InputError& error) {
    throw CLI::ValidationError("--resume", error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    throw CLI::ValidationError("--resume", error.what());
  }
}

void add_config_option(CLI::App& app) {
  app.config_formatter(std::make_shared<CommandConfig>(app));
  app.set_config("--config", "", "Read options from a TOML file")
      ->type_name("FILE")
      ->transform([](const std::string& file) { return file == "-" ? kStandardInput : file; });
}

std::string config_text(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_configurable()) continue;
    CLI::results_t values =
        option->count() > 0 ? option->reduced_results() : default_values(*option);
    if (values.empty()) continue;
    if (values == CLI::results_t{"{}"} && is_list(*option)) values.clear();
    std::vector<std::string> shown;
    for (const std::string& value : values) shown.push_back(toml_value(value));
    const std::string all = fmt::format("{}", fmt::join(shown, ", "));
    text += saved_option(command, option->get_single_name());
    text += "=" + (is_list(*option) ? "[" + all + "]" : all) + "\n";
  }
  return text;
}

}  // namespace nsimplex::cli
