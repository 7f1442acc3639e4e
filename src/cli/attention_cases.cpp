#include "cli/attention_cases.h"

#include <fmt/format.h>

#include <sstream>

#include "support/error.h"

namespace nsimplex::cli {

// Written by the build from bench/cases/attention.txt and bench/cases/attention_speed.txt.
extern const char* const kVerificationCases;
extern const char* const kSpeedCases;

namespace {

std::vector<NamedCase> parse_cases(const char* text) {
  std::vector<NamedCase> cases;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    NamedCase named;
    if (!(words >> named.name) || named.name.front() == '#') continue;
    std::string flags;
    std::getline(words, flags);
    CLI::App parser;
    add_attention_flags(parser, named.shape);
    parser.parse(flags);
    complete(named.shape);
    cases.push_back(std::move(named));
  }
  return cases;
}

}  // namespace

std::vector<NamedCase> verification_cases() { return parse_cases(kVerificationCases); }
std::vector<NamedCase> speed_cases() { return parse_cases(kSpeedCases); }

AttentionCase find_case(const std::string& name) {
  for (const auto& cases : {verification_cases(), speed_cases()}) {
    for (const NamedCase& named : cases) {
      if (named.name == name) return named.shape;
    }
  }
  throw InputError(fmt::format("--case: no case is called '{}' (bench/cases lists them)", name));
}

}  // namespace nsimplex::cli
