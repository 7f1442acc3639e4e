// Starts nsimplex-lab for `nsimplex lab NAME`.

#include "cli/lab_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/former_options.h"
#include "support/executable.h"
#include "support/log.h"

namespace nsimplex::cli {
std::optional<std::vector<std::string>> lab_arguments(std::vector<std::string> words) {
  const size_t place = first_command(words);
  if (place == words.size() || words[place] != "lab") return std::nullopt;
  words.erase(words.begin() + static_cast<ptrdiff_t>(place));
  return words;
}

int start_lab(std::vector<std::string> arguments) {
  std::string program = (executable_folder() / "nsimplex-lab").string();
  std::vector<char*> pointers{program.data()};
  for (std::string& each : arguments) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  execv(program.c_str(), pointers.data());
  const bool missing = errno == ENOENT;
  log_line(missing ? std::string("lab: ").append(program).append(
                         " is not there; make lab builds it (target nsimplex_lab_cli)")
                   : std::string("lab: cannot run ")
                         .append(program)
                         .append(": ")
                         .append(std::strerror(errno)));
  return 1;
}

}  // namespace nsimplex::cli
