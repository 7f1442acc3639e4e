#include "io/text_reading.h"

namespace nsimplex::io {

std::string delimiter_name(Delimiter delimiter) {
  switch (delimiter) {
    case Delimiter::tab:
      return "tab";
    case Delimiter::semicolon:
      return "semicolon";
    case Delimiter::pipe:
      return "pipe";
    case Delimiter::space:
      return "space";
    default:
      return "comma";
  }
}

std::optional<Delimiter> parse_delimiter(std::string_view name) {
  for (const Delimiter each : {Delimiter::comma, Delimiter::tab, Delimiter::semicolon,
                               Delimiter::pipe, Delimiter::space}) {
    if (delimiter_name(each) == name) return each;
  }
  return std::nullopt;
}

namespace {

template <class Option>
std::string notice(const TextReading& reading, bool guesses_only, Option&& option) {
  std::string text;
  for (const TextReading::Decision& decision : reading.decisions) {
    if (guesses_only && !decision.guessed) continue;
    text.append(text.empty() ? "" : "; ").append(decision.what);
    if (decision.option.empty()) continue;
    text.append(" (").append(option(decision)).append(" ").append(decision.otherwise).append(")");
  }
  return text;
}

}  // namespace

std::string command_line_notice(const TextReading& reading) {
  return notice(reading, false, [](const TextReading::Decision& decision) {
    return "--" + decision.option + (decision.value ? " yes" : " no");
  });
}

std::string python_notice(const TextReading& reading) {
  return notice(reading, true, [](const TextReading::Decision& decision) {
    return decision.option + (decision.value ? "=True" : "=False");
  });
}

}  // namespace nsimplex::io
