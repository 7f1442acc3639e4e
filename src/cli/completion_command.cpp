#include <fmt/format.h>

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

std::string line_of(std::string_view table, const std::string& key, const std::string& words) {
  return fmt::format("{}[\"{}\"]=\"{}\"\n", table, key, words);
}

// The script's lines about a command and those below it: what may follow its name, the values of
// each option that has a choice of them, and the options that take no value.
void describe(const CLI::App& command, std::string& script) {
  std::string words, values, flags;
  const std::string name = full_name(command);
  const auto below = command.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* each : below) {
    if (each->get_group().empty()) continue;
    words += each->get_name() + " ";
    describe(*each, script);
  }
  if (name == "nsimplex") words += "help lab ";
  for (const CLI::Option* option : command.get_options()) {
    std::string choices;
    for (const std::string& choice : choices_of(*option)) choices += choice + " ";
    if (option->get_positional()) words += choices;
    for (const std::string& long_name : option->get_lnames()) {
      words += "--" + long_name + " ";
      if (!choices.empty())
        values += line_of("_nsimplex_values", name + " --" + long_name, choices);
      if (option->get_expected_min() == 0) flags += "--" + long_name + " ";
    }
  }
  // Every command takes the file of options that the program declares.
  if (below.empty()) words += "--config ";
  script += line_of("_nsimplex_words", name, words) + values;
  if (!flags.empty()) script += line_of("_nsimplex_flags", name, flags);
}

// The words before the cursor lead to a command. Where nothing fits, bash offers files. The words
// of nsimplex-lab are asked for when they are first needed.
constexpr std::string_view kFunction = R"bash(_nsimplex() {
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

int run_completion(const CompletionOptions& options) {
  std::string script = "declare -gA _nsimplex_words _nsimplex_values _nsimplex_flags\n";
  describe(*options.program, script);
  script += kFunction;
  if (options.json) {
    print_json_line("completion", {{"shell", options.shell}, {"script", script}});
  } else {
    print(script);
  }
  return 0;
}

}  // namespace

void add_completion_command(CLI::App& parent, Session& session) {
  auto options = std::make_shared<CompletionOptions>();
  options->program = &parent;
  CLI::App& command =
      add_command(parent, session,
                  {.name = "completion",
                   .summary = "Print a script that lets a shell complete commands and options",
                   .examples = "eval \"$(nsimplex completion bash)\"\n"
                               "nsimplex completion bash > ~/.local/share/bash-completion/"
                               "completions/nsimplex",
                   .acts = {.out = false, .seed = false, .threads = false}},
                  options, run_completion);
  command.add_option("SHELL", options->shell, "The shell")
      ->check(CLI::IsMember({"bash"}))
      ->capture_default_str();
}

}  // namespace nsimplex::cli
