// The command `completion`: scripts for bash, zsh and fish from the list of all options.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/output.h"

namespace nsimplex::cli {
namespace {

struct CompletionOptions : CommonOptions {
  std::string shell = "bash";
  const CLI::App* program = nullptr;
};

struct Choice {
  std::string word, meaning;
};

struct OptionWords {
  std::vector<std::string> names;  // with dashes; none for an argument
  std::string meaning;
  std::vector<std::string> choices;
  bool flag = false;
};

// What may follow the name of a command.
struct CommandWords {
  std::string name;
  std::vector<Choice> commands;
  std::vector<OptionWords> options;
};

OptionWords words_of(const CLI::Option& option) {
  OptionWords words{
      .meaning = option.get_description(), .choices = choices_of(option), .flag = is_flag(option)};
  for (const std::string& name : option.get_lnames()) words.names.push_back("--" + name);
  return words;
}

void collect(const CLI::App& command, std::vector<CommandWords>& all) {
  CommandWords own{.name = full_name(command)};
  for (const CLI::App* below : shown_commands(command)) {
    own.commands.push_back({below->get_name(), below->get_description()});
    collect(*below, all);
  }
  const bool leaf = own.commands.empty();
  if (own.name == "nsimplex") {
    own.commands.push_back({"help", "Show the options of a command"});
    own.commands.push_back({"version", "Print the version"});
    own.commands.push_back({"lab", "Experiments of the papers"});
  }
  for (const CLI::Option* option : command.get_options()) own.options.push_back(words_of(*option));
  // Every command takes the file of options that the program declares.
  if (leaf) own.options.push_back({{"--config"}, "Read options from a TOML file", {}, false});
  all.push_back(std::move(own));
}

// A line of a table of bash or zsh: the key in it and its words.
using TableLine =
    std::function<std::string(std::string_view table, const std::string& key, std::string words)>;

// Tables of the words after each command, the values of each option that has a choice of them, and
// the options that take no value.
std::string tables(const std::vector<CommandWords>& commands, const TableLine& line) {
  std::string script;
  for (const CommandWords& command : commands) {
    std::string words, values, flags;
    for (const Choice& each : command.commands) words += each.word + " ";
    for (const OptionWords& option : command.options) {
      const std::string choices = fmt::format("{}", fmt::join(option.choices, " "));
      if (option.names.empty()) words += choices + " ";
      for (const std::string& name : option.names) {
        words += name + " ";
        if (!choices.empty()) values += line("values", command.name + " " + name, choices);
        if (option.flag) flags += name + " ";
      }
    }
    script += line("words", command.name, words) + values;
    if (!flags.empty()) script += line("flags", command.name, flags);
  }
  return script;
}

// The words before the cursor lead to a command. Where nothing fits, shells offer files. The words
// of nsimplex-lab are asked for when they are first needed.
constexpr std::string_view kBash = R"bash(_nsimplex() {
  local command=nsimplex word values flags plain previous=${COMP_WORDS[COMP_CWORD - 1]}
  local current=${COMP_WORDS[COMP_CWORD]}
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ "$command $word" == "nsimplex lab" && -z ${_nsimplex_words["nsimplex lab"]-} ]]; then
      eval "$("${COMP_WORDS[0]}" lab completion bash 2>/dev/null)"
    fi
    if [[ -n ${_nsimplex_words["$command $word"]-} ]]; then command+=" $word"; fi
  done
  flags=" ${_nsimplex_flags[nsimplex]-} ${_nsimplex_flags["$command"]-} "
  [[ $previous != -* || $flags == *" $previous "* ]] && plain=yes
  values=${_nsimplex_values["$command $previous"]-}
  if [[ -z $values && ( $current == -* || -n $plain ) ]]; then
    values=${_nsimplex_words["$command"]-}
    [[ $current == -* ]] || values=$(tr ' ' '\n' <<<"$values" | grep -v ^-)
  fi
  COMPREPLY=($(compgen -W "$values" -- "$current"))
}
complete -o default -F _nsimplex nsimplex
)bash";

constexpr std::string_view kZsh = R"zsh(_nsimplex() {
  local command=nsimplex word values flags plain
  local previous=${words[CURRENT-1]} current=${words[CURRENT]}
  for word in ${words[2,CURRENT-1]}; do
    if [[ "$command $word" == "nsimplex lab" && -z ${_nsimplex_words[nsimplex lab]-} ]]; then
      eval "$(${words[1]} lab completion zsh 2>/dev/null)"
    fi
    if [[ -n ${_nsimplex_words[$command $word]-} ]]; then command+=" $word"; fi
  done
  flags=" ${_nsimplex_flags[nsimplex]-} ${_nsimplex_flags[$command]-} "
  [[ $previous != -* || $flags == *" $previous "* ]] && plain=yes
  values=(${=_nsimplex_values[$command $previous]-})
  if [[ -z $values && ( $current == -* || -n $plain ) ]]; then
    values=(${=_nsimplex_words[$command]-})
    [[ $current == -* ]] || values=(${values:#-*})
  fi
  compadd -- $values || _files
}
if [[ ${funcstack[1]-} == _nsimplex ]]; then _nsimplex "$@"; else compdef _nsimplex nsimplex; fi
)zsh";

constexpr std::string_view kFish = R"fish(function __nsimplex_at
  set -l typed (commandline -opc)
  set -l command nsimplex
  for word in $typed[2..-1]
    contains -- "$command $word" $__nsimplex_commands; and set command "$command $word"
  end
  test "$command" = "$argv[1]"
end
function __nsimplex_lab_is_new
  contains -- lab (commandline -opc); and not set -q __nsimplex_lab
end
function __nsimplex_lab
  set -g __nsimplex_lab asked
  set -l typed (commandline -opc)
  $typed[1] lab completion fish 2>/dev/null | source
  complete -C (commandline -cp)
end
complete -c nsimplex -n __nsimplex_lab_is_new -f -a '(__nsimplex_lab)'
)fish";

std::string bash_script(const std::vector<CommandWords>& commands) {
  const auto line = [](std::string_view table, const std::string& key, const std::string& words) {
    return fmt::format("_nsimplex_{}[\"{}\"]=\"{}\"\n", table, key, words);
  };
  return fmt::format("declare -gA _nsimplex_words _nsimplex_values _nsimplex_flags\n{}{}",
                     tables(commands, line), kBash);
}

std::string zsh_script(const std::vector<CommandWords>& commands) {
  const auto line = [](std::string_view table, const std::string& key, const std::string& words) {
    return fmt::format("_nsimplex_{}+=('{}' '{}')\n", table, key, words);
  };
  return fmt::format(
      "#compdef nsimplex\ntypeset -gA _nsimplex_words _nsimplex_values _nsimplex_flags\n{}{}",
      tables(commands, line), kZsh);
}

std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return quoted + "'";
}

// fish shows the meaning of each word beside it.
std::string fish_lines(const CommandWords& command) {
  const std::string at =
      fmt::format("complete -c nsimplex -n \"__nsimplex_at '{}'\"", command.name);
  std::string script = fmt::format("set -ga __nsimplex_commands '{}'\n", command.name);
  for (const auto& [word, meaning] : command.commands) {
    script += fmt::format("{} -f -a {} -d {}\n", at, word, fish_quoted(meaning));
  }
  for (const OptionWords& option : command.options) {
    const std::string choices = fmt::format("'{}'", fmt::join(option.choices, " "));
    const std::string value = option.flag              ? ""
                              : option.choices.empty() ? " -r"
                                                       : " -x -a " + choices;
    for (const std::string& name : option.names) {
      script +=
          fmt::format("{} -l {}{} -d {}\n", at, name.substr(2), value, fish_quoted(option.meaning));
    }
    if (option.names.empty() && !option.choices.empty()) {
      script += fmt::format("{} -f -a {}\n", at, choices);
    }
  }
  return script;
}

std::string fish_script(const std::vector<CommandWords>& commands) {
  std::string script(kFish);
  for (const CommandWords& command : commands) script += fish_lines(command);
  return script;
}

struct Shell {
  const char* name;
  std::string (*script)(const std::vector<CommandWords>& commands);
};

constexpr Shell kShells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

int run_completion(const CompletionOptions& options) {
  std::vector<CommandWords> commands;
  collect(*options.program, commands);
  for (const Shell& shell : kShells) {
    if (options.shell != shell.name) continue;
    const std::string script = shell.script(commands);
    if (options.json) {
      print_json_line("completion", {{"shell", options.shell}, {"script", script}});
    } else {
      print(script);
    }
  }
  return 0;
}

}  // namespace

void add_completion_command(CLI::App& parent, Session& session) {
  auto options = std::make_shared<CompletionOptions>();
  options->program = &parent;
  CLI::App& command = add_command(
      parent, session,
      {.name = "completion",
       .summary = "Print a script that lets a shell complete commands and options",
       .examples = "eval \"$(nsimplex completion bash)\"\n"
                   "nsimplex completion bash > ~/.local/share/bash-completion/"
                   "completions/nsimplex\n"
                   "nsimplex completion zsh > ~/.zfunc/_nsimplex\n"
                   "nsimplex completion fish > ~/.config/fish/completions/nsimplex.fish",
       .acts = {.out = false, .seed = false, .threads = false}},
      options, run_completion);
  std::vector<std::string> names;
  for (const Shell& shell : kShells) names.emplace_back(shell.name);
  command.add_option("SHELL", options->shell, "The shell: bash, zsh or fish")
      ->check(one_of(names))
      ->capture_default_str();
}

}  // namespace nsimplex::cli
