// Starts nsimplex-lab for `nsimplex lab NAME`, and knows former names of experiments.

#include "cli/lab_program.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "support/executable.h"
#include "support/log.h"

namespace nsimplex::cli {
namespace {

struct FormerName {
  std::string_view group, command, now;
};

constexpr std::array<FormerName, 17> kFormerNames{{{"task", "match2", "match2"},
                                                   {"task", "match3", "match3"},
                                                   {"task", "match4", "match4"},
                                                   {"lm", "compare", "lm-compare"},
                                                   {"lm", "scaling", "lm-scaling"},
                                                   {"graph", "chains", "chains"},
                                                   {"graph", "scaling", "graph-scaling"},
                                                   {"graph", "delaunay", "delaunay"},
                                                   {"graph", "jets", "jets"},
                                                   {"causal", "synthetic", "synthetic"},
                                                   {"causal", "attenuation", "attenuation"},
                                                   {"causal", "robustness", "robustness"},
                                                   {"causal", "complexity", "complexity"},
                                                   {"analyze", "smoothing", "smoothing"},
                                                   {"analyze", "lipschitz", "lipschitz"},
                                                   {"analyze", "sensitivity", "sensitivity"},
                                                   {"analyze", "transfer", "transfer"}}};

const FormerName* former_name(std::string_view group, std::string_view command) {
  const auto found = std::ranges::find_if(kFormerNames, [&](const FormerName& each) {
    return each.group == group && each.command == command;
  });
  return found == kFormerNames.end() ? nullptr : &*found;
}

// The first word after --config and --json, the only options that may precede a command.
auto first_command(std::vector<std::string>& words) {
  auto word = words.begin();
  while (word != words.end()) {
    if (*word == "--config" && word + 1 != words.end()) {
      word += 2;
    } else if (*word == "--json" || word->starts_with("--config=")) {
      word += 1;
    } else {
      break;
    }
  }
  return word;
}

}  // namespace

std::optional<std::vector<std::string>> lab_arguments(std::vector<std::string> words) {
  const auto word = first_command(words);
  if (word == words.end()) return std::nullopt;
  if (*word == "lab") {
    words.erase(word);
    return words;
  }
  if (word + 1 == words.end()) return std::nullopt;
  const FormerName* former = former_name(*word, *(word + 1));
  if (former == nullptr) return std::nullopt;
  log_line(std::string("nsimplex ")
               .append(former->group)
               .append(" ")
               .append(former->command)
               .append(" is now called nsimplex lab ")
               .append(former->now));
  *words.erase(word) = former->now;
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

std::vector<std::string> with_current_name(std::vector<std::string> words) {
  for (size_t i = 1; i < words.size(); ++i) {
    const FormerName* former = former_name(words[i - 1], words[i]);
    if (former == nullptr) continue;
    words[i - 1] = "lab";
    words[i] = former->now;
    break;
  }
  return words;
}

}  // namespace nsimplex::cli
