#include "cli/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/suggestions.h"

namespace nsimplex::cli {
namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::string describe_unknown(const CLI::App& command, const std::string& word) {
  if (word.size() > 1 && word.front() == '-') {
    const std::string name = word.substr(0, word.find('='));
    return with_suggestion("unknown option " + name, name, option_names(&command));
  }
  const auto commands = command_names(command);
  if (commands.empty()) return "unexpected argument '" + word + "'";
  return with_suggestion("unknown command '" + word + "'", word, commands);
}

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() {
    column_width(34);
    label("SUBCOMMAND", "COMMAND");
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    const std::string type = option->get_type_name();
    // Behind the colon CLI11 spells out the checks; the error message says them when they matter.
    return " " + type.substr(0, type.find(':')) + (option->get_required() ? " (required)" : "");
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::string value = option->get_default_str();
    constexpr size_t kShort = 8;
    double number = 0;
    if (value.size() > kShort && CLI::detail::lexical_cast(value, number)) {
      value = fmt::format("{:.6g}", number);
    }
    return option->get_description() + (value.empty() ? "" : " [" + value + "]");
  }
};

}  // namespace

std::string describe_usage_error(CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = typed_command(app);
  const std::vector<std::string> unknown = app.remaining(true);
  std::string message;
  if (!unknown.empty()) {
    message = describe_unknown(command, unknown.front());
  } else if (!command_names(command).empty()) {
    message = "name a command:";
    for (const std::string& name : command_names(command)) message += " " + name;
  } else {
    message = error.what();
  }
  std::replace(message.begin(), message.end(), '\n', ' ');
  return message + " (see " + full_name(command) + " --help)";
}

std::shared_ptr<CLI::Formatter> help_formatter() { return std::make_shared<HelpFormatter>(); }

}  // namespace nsimplex::cli
