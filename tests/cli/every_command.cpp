#include "cli/every_command.h"

#include <algorithm>

#include "cli/former_options.h"
#include "support/error.h"

namespace nsimplex::cli::testing {
namespace {

void collect(CLI::App& app, const Words& path, std::vector<Words>& commands) {
  const auto below = commands_below(app);
  if (below.empty()) commands.push_back(path);
  for (CLI::App* each : below) collect(*each, joined(path, {each->get_name()}), commands);
}

}  // namespace

std::string ParsedLine::parse(Words words) {
  const auto word = std::ranges::find(words, "lab");
  const bool of_lab = word != words.end();
  if (of_lab) words.erase(word);
  CLI::App& app = of_lab ? *lab_ : *product_;
  try {
    words = with_current_options(app, std::move(words));
    std::ranges::reverse(words);  // CLI11 takes them from the back
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return describe_usage_error(app, error);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

CLI::App& ParsedLine::command(const Words& path) {
  CLI::App* app = product_.get();
  for (const std::string& name : path) app = name == "lab" ? lab_.get() : app->get_subcommand(name);
  return *app;
}

std::vector<Words> ParsedLine::commands() {
  std::vector<Words> commands;
  collect(*product_, {}, commands);
  collect(*lab_, {"lab"}, commands);
  return commands;
}

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words least_words(ParsedLine& line, const Words& path) {
  Words words = path;
  for (const CLI::Option* option : line.command(path).get_options()) {
    if (!option->get_required()) continue;
    if (!option->get_positional()) words.push_back(option->get_name());
    const std::vector<std::string> choices = choices_of(*option);
    words.push_back(choices.empty() ? "input" : choices.front());
  }
  return words;
}

}  // namespace nsimplex::cli::testing
