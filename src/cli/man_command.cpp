// The command `man`: a manual page from the list of all options.

#include <fmt/format.h>
#include <nsimplex/version.h>

#include <memory>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "cli/output.h"

namespace nsimplex::cli {
namespace {

struct ManOptions : CommonOptions {
  const CLI::App* program = nullptr;
};

// A text that roff shows as it is: no character of it is a command.
std::string roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (escaped.empty() || escaped.back() == '\n')) escaped += "\\&";
    escaped += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  }
  return escaped;
}

std::string item_of(const CLI::Option& option) {
  std::string head = fmt::format("\\fB{}\\fR", roff(option.get_name(/*positional=*/false,
                                                                    /*all_options=*/true)));
  if (const std::string value = option_value(option); !value.empty()) {
    head += fmt::format(" \\fI{}\\fR", roff(value));
  }
  return fmt::format(".TP\n{}\n{}\n", head, roff(option_text(option)));
}

std::string items_of(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) text += item_of(*option);
  return text;
}

// The sections of a command and of those below it.
std::string sections_of(const CLI::App& command) {
  std::string text;
  for (const CLI::App* below : shown_commands(command)) {
    const std::string further = sections_of(*below);
    text += further;
    if (!further.empty()) continue;  // a group of commands
    const std::string footer = below->get_footer();
    text += fmt::format(".SS {}\n{}.\n{}.PP\n.nf\n{}\n.fi\n", roff(full_name(*below)),
                        roff(below->get_description()), items_of(*below),
                        roff(footer.substr(0, footer.find("\n\n"))));
  }
  return text;
}

constexpr std::string_view kExitStatus = R"roff(.SH EXIT STATUS
.TP
0
done
.TP
1
the run failed
.TP
2
bad usage or bad input, which one line explains
.TP
130
interrupted
)roff";

std::string page_of(const CLI::App& program) {
  const std::string name = full_name(program);
  return fmt::format(
      ".TH NSIMPLEX 1 {} \"nsimplex {}\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n"
      "\\fB{}\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR ...]\n.SH OPTIONS\n{}.SH COMMANDS\n{}{}",
      local_time("%Y-%m-%d"), version(), roff(name), roff(program.get_description()), roff(name),
      items_of(program), sections_of(program), kExitStatus);
}

int run_man(const ManOptions& options) {
  const std::string page = page_of(*options.program);
  if (options.json) {
    print_json_line("man", {{"page", page}});
  } else {
    print(page);
  }
  return 0;
}

}  // namespace

void add_man_command(CLI::App& parent, Session& session) {
  auto options = std::make_shared<ManOptions>();
  options->program = &parent;
  add_command(parent, session,
              {.name = "man",
               .summary = "Print the manual page of all commands",
               .examples = "nsimplex man | man -l -\n"
                           "nsimplex man > ~/.local/share/man/man1/nsimplex.1",
               .acts = {.out = false, .seed = false, .threads = false}},
              options, run_man);
}

}  // namespace nsimplex::cli
