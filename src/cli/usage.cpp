#include "cli/usage.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

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

// The candidate that `word` was probably meant to be; empty when nothing is near.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
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

// The command that was typed, as far as it was understood.
const CLI::App& typed_command(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : typed_command(*parsed.back());
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

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::string with_suggestion(std::string message, const std::string& suggestion) {
  if (!suggestion.empty()) message += "; did you mean " + suggestion + "?";
  return message;
}

// "nsimplex lm train"
std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

std::string describe_unknown(const CLI::App& command, const std::string& word) {
  if (word.size() > 1 && word.front() == '-') {
    const std::string name = word.substr(0, word.find('='));
    return with_suggestion("unknown option " + name, nearest(name, option_names(&command)));
  }
  const auto commands = command_names(command);
  if (commands.empty()) return "unexpected argument '" + word + "'";
  return with_suggestion("unknown command '" + word + "'", nearest(word, commands));
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
    const std::string value = option->get_default_str();
    return option->get_description() + (value.empty() ? "" : " [" + value + "]");
  }
};

class CommandConfig : public CLI::ConfigTOML {
 public:
  explicit CommandConfig(const CLI::App& app) : app_(app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    auto items = CLI::ConfigTOML::from_config(input);
    const CLI::App& command = typed_command(app_);
    std::vector<std::string> path;
    for (const CLI::App* app = &command; app->get_parent() != nullptr; app = app->get_parent()) {
      path.insert(path.begin(), app->get_name());
    }
    for (CLI::ConfigItem& item : items) {
      if (!item.parents.empty()) continue;
      const std::string option = "--" + item.name;
      if (command.get_option_no_throw(option) == nullptr) {
        const std::string suggestion = nearest(option, option_names(&command));
        throw CLI::ConfigError(
            with_suggestion("unknown name '" + item.name + "' in the config file",
                            suggestion.empty() ? "" : suggestion.substr(2)),
            CLI::ExitCodes::ConfigError);
      }
      item.parents = path;
    }
    return items;
  }

 private:
  const CLI::App& app_;
};

}  // namespace

std::string describe_usage_error(const CLI::App& app, const CLI::ParseError& error) {
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

std::shared_ptr<CLI::Config> command_config(const CLI::App& app) {
  return std::make_shared<CommandConfig>(app);
}

}  // namespace nsimplex::cli
