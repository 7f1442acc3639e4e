// The tables of former names of options and commands, for the command line and config files.

#include "cli/former_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "cli/options.h"
#include "support/error.h"
#include "support/log.h"

namespace nsimplex::cli {
namespace {

// Former names are accepted until this version.
constexpr std::string_view kLastVersion = "0.4";

struct FormerCommand {
  std::string_view before, now;  // the words after nsimplex
};

constexpr std::array<FormerCommand, 25> kFormerCommands{
    {{"task match2", "lab match2"},
     {"task match3", "lab match3"},
     {"task match4", "lab match4"},
     {"lm compare", "lab lm-compare"},
     {"lm scaling", "lab lm-scaling"},
     {"graph chains", "lab chains"},
     {"graph scaling", "lab graph-scaling"},
     {"graph delaunay", "lab delaunay"},
     {"graph jets", "lab jets"},
     {"graph hyperedges", "lab hyperedges"},
     {"graph molecules", "lab molecules"},
     {"causal synthetic", "lab synthetic"},
     {"causal attenuation", "lab attenuation"},
     {"causal robustness", "lab robustness"},
     {"causal complexity", "lab complexity"},
     {"analyze smoothing", "lab smoothing"},
     {"analyze lipschitz", "lab lipschitz"},
     {"analyze sensitivity", "lab sensitivity"},
     {"analyze transfer", "lab transfer"},
     {"causal classify", "causal task classify"},
     {"causal cluster", "causal task cluster"},
     {"causal regress", "causal task regress"},
     {"causal perturb", "causal task perturb"},
     {"lab perturb", "causal task perturb"},
     {"bench levels", "bench attention --levels"}}};

struct FormerOption {
  std::string_view before, now;
  std::string_view commands;  // that had the former name, between commas
  bool saved = true;          // whether config.toml has the former name
};

// One word per idea: lr, width, repeats, seeds, scale, angle, rows, and train, validation and test.
constexpr std::array<FormerOption, 20> kFormerOptions{
    {{"learning-rate", "lr", "graph train"},
     {"dim", "width",
      "lm train, causal task classify, causal task cluster, causal task regress, causal task "
      "perturb, lab lm-compare, lab lm-scaling, lab match2, lab match3, lab match4, lab pays, lab "
      "smoothing, bench attention, bench sparse"},
     {"value-dim", "value-width", "bench attention, bench sparse"},
     {"head-dim", "head-width", "lab transfer"},
     {"dims", "widths", "lab lipschitz, lab sensitivity"},
     {"dim", "dimension", "causal embed, lab complexity, lab synthetic", false},
     {"repetitions", "repeats", "lab robustness"},
     {"runs", "repeats", "lab complexity"},
     {"graphs", "seeds", "lab synthetic"},
     {"preset", "scale", "lm train"},
     {"scale", "angle", "causal encode, lab attenuation, lab robustness"},
     {"observations", "control-rows", "causal task perturb"},
     {"held-out", "test", "lab match2, lab match3, lab match4"},
     {"unseen", "test", "causal task perturb"},
     {"share", "train", "causal task classify, causal task regress"},
     {"split", "part", "lm eval, analyze model"},
     {"val-tokens", "validation-tokens", "lm train, lab lm-compare, lab lm-scaling, lab transfer"},
     {"samples", "queries", "analyze model"},
     {"sample", "sample-latents", "causal fit"},
     {"observations", "rows", ""}}};  // no option was called so, but an argument of Python is

bool names(std::string_view commands, const CLI::App& command) {
  const std::string name = full_name(command);
  const std::string_view wanted = std::string_view(name).substr(name.find(' ') + 1);
  while (!commands.empty()) {
    const size_t end = std::min(commands.find(", "), commands.size());
    if (commands.substr(0, end) == wanted) return true;
    commands.remove_prefix(std::min(end + 2, commands.size()));
  }
  return false;
}

const FormerOption* former_option(const CLI::App& command, std::string_view before) {
  const auto found = std::ranges::find_if(kFormerOptions, [&](const FormerOption& each) {
    return each.before == before && names(each.commands, command);
  });
  return found == kFormerOptions.end() ? nullptr : &*found;
}

// Walks through the words as the parser does: it tells names of options from their values.
class TypedWords {
 public:
  explicit TypedWords(CLI::App& app) : command_(&app) {}

  // The name without dashes of the option that the word gives; empty for every other word.
  std::string_view name_in(std::string_view word) {
    if (over_ || values_ > 0) {
      values_ -= values_ > 0;
      return {};
    }
    over_ = word == "--";
    if (over_ || !word.starts_with("--")) {
      for (CLI::App* below : commands_below(*command_)) {
        if (below->get_name() == word) command_ = below;
      }
      return {};
    }
    return word.substr(2, std::min(word.find('='), word.size()) - 2);
  }

  // The option of that name, which may belong to a command above.
  const CLI::Option* option(const std::string& name) const {
    const CLI::Option* option = nullptr;
    for (CLI::App* at = command_; at != nullptr && option == nullptr; at = at->get_parent()) {
      option = at->get_option_no_throw(name);
    }
    return option;
  }

  // Its values follow the word, unless they are in it.
  void expect_values(const std::string& word) {
    const CLI::Option* const option = this->option(word);
    if (option != nullptr) values_ = std::min(option->get_items_expected_min(), 1);
  }

  const CLI::App& command() const { return *command_; }

 private:
  CLI::App* command_;
  int values_ = 0;
  bool over_ = false;
};

}  // namespace

size_t first_command(const std::vector<std::string>& words, size_t from) {
  while (from < words.size()) {
    const std::string& word = words[from];
    if (word == "--config" && from + 1 < words.size()) {
      from += 2;
    } else if (word == "--json" || word.starts_with("--config=")) {
      from += 1;
    } else {
      break;
    }
  }
  return from;
}

std::string use_current_command(std::vector<std::string>& words, size_t from) {
  const size_t first = first_command(words, from);
  if (first >= words.size()) return "";
  const auto place = words.begin() + static_cast<ptrdiff_t>(first);
  for (const auto& [before, now] : kFormerCommands) {
    const std::vector<std::string> old = CLI::detail::split(std::string(before), ' ');
    if (words.end() - place < std::ssize(old) || !std::equal(old.begin(), old.end(), place))
      continue;
    const std::vector<std::string> current = CLI::detail::split(std::string(now), ' ');
    words.insert(words.erase(place, place + std::ssize(old)), current.begin(), current.end());
    return fmt::format("nsimplex {} is now called nsimplex {}; the old name works until version {}",
                       before, now, kLastVersion);
  }
  return "";
}

std::vector<std::string> with_current_options(CLI::App& app, std::vector<std::string> words) {
  TypedWords line(app);
  std::set<std::string> given, said;            // present names, former names
  std::map<std::string, std::string> replaced;  // present names, and the former ones in their place
  for (std::string& word : words) {
    const std::string name(line.name_in(word));
    if (name.empty()) continue;
    const FormerOption* former = former_option(line.command(), name);
    std::string now = former == nullptr ? name : std::string(former->now);
    const CLI::Option* const option = line.option("--" + now);
    const bool list = option != nullptr && option->get_delimiter() != '\0';
    const bool again = former == nullptr ? given.contains(now) : replaced.contains(now);
    if (list && again) {
      throw InputError(
          fmt::format("--{}: expected once, with commas between entries, got it again", now));
    }
    if (former == nullptr) {
      given.insert(now);
    } else {
      replaced[now] = name;
    }
    if (given.contains(now) && replaced.contains(now)) {
      throw InputError(
          fmt::format("--{}: expected once, got its former name --{} as well", now, replaced[now]));
    }
    if (former != nullptr) {
      word.replace(2, name.size(), now);
      if (said.insert(name).second) {
        log_line(fmt::format("--{} is now --{}; the old name works until version {}", name, now,
                             kLastVersion));
      }
    }
    line.expect_values(word);
  }
  return words;
}

std::string current_option(const CLI::App& command, const std::string& name) {
  const FormerOption* former = former_option(command, name);
  return former == nullptr ? name : std::string(former->now);
}

std::string saved_option(const CLI::App& command, const std::string& name) {
  for (const FormerOption& each : kFormerOptions) {
    if (each.saved && each.now == name && names(each.commands, command)) {
      return std::string(each.before);
    }
  }
  return name;
}

std::string option_like(const CLI::App& command, std::string_view word) {
  for (const FormerOption& each : kFormerOptions) {
    const std::string now = fmt::format("--{}", each.now);
    if (each.before == word && command.get_option_no_throw(now) != nullptr) return now;
  }
  return "";
}

}  // namespace nsimplex::cli
