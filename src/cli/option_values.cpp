// Checks the values of options, says what was expected, and names values in the help.

#include "cli/option_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>

#include "support/printable.h"

namespace nsimplex::cli {
namespace {

// CLI11's form of an empty list in a config file.
constexpr std::string_view kEmptyList = "{}";

// NaN for a text that is not a number.
double number_of(const std::string& text) {
  double number = 0;
  return CLI::detail::lexical_cast(text, number) ? number : std::nan("");
}

std::string shown(const std::string& text) {
  constexpr size_t kLongest = 40;
  double number = 0;
  if (text.size() <= kLongest && CLI::detail::lexical_cast(text, number)) return text;
  std::string quoted = quoted_name(text);
  quoted.front() = quoted.back() = '\'';
  return quoted;
}

CLI::Validator number_check(const std::string& what, const std::function<bool(double)>& fits) {
  return expected(what, [fits](const std::string& text) { return fits(number_of(text)); });
}

template <class Integer>
bool is_integer(const std::string& text) {
  Integer number = 0;
  return to_integer(text, number);
}

// The last check of a number, also of one without limits.
std::optional<CLI::Validator> check_of(const std::string& type) {
  const auto check = [](const std::string& what, bool (*fits)(const std::string&)) {
    return expected(what,
                    [fits](const std::string& text) { return text == kEmptyList || fits(text); });
  };
  if (type == "INT") return check("a whole number", is_integer<int64_t>);
  if (type == "UINT") {
    return check(fmt::format("a whole number from 0 to {}", std::numeric_limits<uint64_t>::max()),
                 is_integer<uint64_t>);
  }
  if (type == "FLOAT") {
    return check("a number", [](const std::string& text) { return !std::isnan(number_of(text)); });
  }
  return std::nullopt;
}

// How the help shows the value of an option whose type CLI11 has named.
std::string placeholder(const CLI::Option& option) {
  constexpr size_t kLongest = 20;  // leaves room for a name in the first columns of the help
  const std::string type = option_value(option);
  const std::string more = is_list(option) ? ",..." : "";
  if (type == "INT" || type == "UINT") return "N" + more;
  if (type == "FLOAT") return "X" + more;
  if (type != "TEXT") return type;
  const std::string all = fmt::format("{}", fmt::join(choices_of(option), "|"));
  if (is_list(option) || all.size() > kLongest) return "NAME" + more;
  return all.empty() ? type : all;
}

// What one of the checks of an option expects, which is its name; empty if no check has one.
std::string checked_for(CLI::Option& option) {
  try {
    for (int index = 0;; ++index) {
      const std::string& what = option.get_validator(index)->get_name();
      if (!what.empty()) return what;
    }
  } catch (const CLI::OptionNotFound&) {  // there are no more
    return "";
  }
}

std::string expectation_of(CLI::Option& option) {
  if (is_flag(option)) return "true or false";
  if (std::string what = checked_for(option); !what.empty()) return what;
  const std::string type = option_value(option);
  if (type.starts_with("FILE")) return "a file";
  if (type.starts_with("DIR")) return "a folder";
  return type.starts_with("NAME") ? "a name" : "a value";
}

// Part of an error after the name of the option, in other words; empty if it is none of CLI11's.
std::string reworded(CLI::Option& option, const std::string& said) {
  if (said.ends_with(" missing")) {
    return fmt::format("expected {}, got nothing", expectation_of(option));
  }
  constexpr std::string_view kBefore = " required but received ";
  const size_t at = said.find(kBefore);
  if (at == said.npos) return "";
  const std::string received = said.substr(at + kBefore.size());
  if (!is_list(option)) return fmt::format("expected once, got it {} times", received);
  return fmt::format("expected {} values, got {}", option.get_items_expected_min(), received);
}

// The names go to the help by way of the type, in which CLI11 lists choices: "TEXT:{auto,yes,no}".
CLI::Validator choice(const std::vector<std::string>& names,
                      std::function<bool(const std::string&)> fits) {
  return expected(fmt::format("one of {}", fmt::join(names, ", ")), std::move(fits))
      .description(fmt::format("{{{}}}", fmt::join(names, ",")));
}

// Where the choices begin in the name of the type of an option.
size_t choices_in(const std::string& type) { return std::min(type.find(":{"), type.size()); }

}  // namespace

std::string option_value(const CLI::Option& option) {
  if (option.get_type_size() == 0) return "";
  const std::string type = option.get_type_name();
  return type.substr(0, choices_in(type));
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = choices_in(type), end = type.rfind('}');
  if (begin == type.size() || end == type.npos) return {};
  return CLI::detail::split(type.substr(begin + 2, end - begin - 2), ',');
}

CLI::Validator expected(const std::string& what, std::function<bool(const std::string&)> fits) {
  const auto answer = [what, fits = std::move(fits)](std::string& text) {
    if (fits(text)) return std::string();
    return fmt::format("expected {}, got {}", what, shown(text));
  };
  return CLI::Validator(answer, "").name(what);
}

CLI::Validator whole_number_within(int64_t least, int64_t most) {
  return expected(fmt::format("a whole number from {} to {}", least, most),
                  [least, most](const std::string& text) {
                    int64_t number = 0;
                    return to_integer(text, number) && number >= least && number <= most;
                  });
}

CLI::Validator number_within(double least, double most) {
  return number_check(fmt::format("a number from {} to {}", least, most),
                      [least, most](double x) { return x >= least && x <= most; });
}

CLI::Validator above_zero() {
  return number_check("a number above 0", [](double x) { return x > 0; });
}

CLI::Validator at_least_zero() {
  return number_check("a number of at least 0", [](double x) { return x >= 0; });
}

CLI::Validator one_of(const std::vector<std::string>& names) {
  return choice(names, [names](const std::string& text) {
    return std::ranges::find(names, text) != names.end();
  });
}

CLI::Option* offer(CLI::Option* option, const std::vector<std::string>& names) {
  return option->check(choice(names, [](const std::string&) { return true; }));
}

void describe_values(CLI::App& app) {
  for (CLI::App* below : commands_below(app)) describe_values(*below);
  for (CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (is_flag(*option)) continue;
    const std::optional<CLI::Validator> check = check_of(option_value(*option));
    option->type_name(placeholder(*option));
    if (check) option->check(*check);
    const bool of_words = option->get_positional() || option_value(*option).ends_with("FILE...");
    if (is_list(*option) && !of_words) option->allow_extra_args(false);
  }
}

std::string plain_error(CLI::App& command, const CLI::ParseError& error) {
  const std::string text = error.what();
  constexpr std::string_view kUnread = "Could not convert: ";
  for (CLI::App* at = &command; at != nullptr; at = at->get_parent()) {
    for (CLI::Option* option : at->get_options([](const CLI::Option*) { return true; })) {
      const std::string name = option->get_name();
      const std::string unread = fmt::format("{}{} = ", kUnread, name);
      if (text.starts_with(unread)) {
        return fmt::format("{}: expected {}, got {}", name, expectation_of(*option),
                           shown(text.substr(unread.size())));
      }
      if (error.get_name() != "ArgumentMismatch" || !text.starts_with(name + ": ")) continue;
      const std::string words = reworded(*option, text.substr(name.size() + 2));
      if (!words.empty()) return fmt::format("{}: {}", name, words);
    }
  }
  return text;
}

}  // namespace nsimplex::cli
