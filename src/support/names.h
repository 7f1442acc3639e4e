// Tables of the names of enum values, and the look-ups and messages that use them.

#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/error.h"

/// Enums and their names in commands, files, operators and messages.
namespace nsimplex {

template <class Enum, size_t count>
using Names = std::array<std::pair<std::string_view, Enum>, count>;

/// The names of an enum, in the order in which messages list them. Every enum with names has its
/// own: template <> inline constexpr Names<Axis, 2> kNames<Axis>{{{"rows", Axis::rows}, ..}};
template <class Enum>
inline constexpr Names<Enum, 0> kNames{};

/// The name of a value; empty for a value without one.
template <class Enum>
constexpr std::string_view name_of(Enum value) {
  static_assert(!kNames<Enum>.empty());
  for (const auto& [name, known] : kNames<Enum>) {
    if (known == value) return name;
  }
  return {};
}

/// The value of a name, if there is one.
template <class Enum>
constexpr std::optional<Enum> find_name(std::string_view name) {
  static_assert(!kNames<Enum>.empty());
  for (const auto& [known, value] : kNames<Enum>) {
    if (known == name) return value;
  }
  return std::nullopt;
}

/// All names, for the choices of an option.
template <class Enum>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const auto& [name, value] : kNames<Enum>) names.emplace_back(name);
  return names;
}

/// How a message lists names. The default reads: expected one of a, b, c, got 'd'.
struct NameList {
  std::string_view before = "one of ", quote = "", separator = ", ", last = separator, got = "'";
};

/// "expected one of a, b, c, got 'NAME'".
template <class Enum>
std::string expected_name(std::string_view name, const NameList& list = {}) {
  constexpr size_t kCount = kNames<Enum>.size();
  std::string text = std::string("expected ").append(list.before);
  for (size_t i = 0; i < kCount; ++i) {
    if (i > 0) text.append(i + 1 < kCount ? list.separator : list.last);
    text.append(list.quote).append(kNames<Enum>[i].first).append(list.quote);
  }
  return text.append(", got ").append(list.got).append(name).append(list.got);
}

/// The value of a name. Throws InputError "ARGUMENT: expected one of "a", "b", got "NAME"".
template <class Enum>
Enum parse_name(std::string_view argument, std::string_view name,
                const NameList& list = {.quote = "\"", .got = "\""}) {
  if (const std::optional<Enum> value = find_name<Enum>(name)) return *value;
  throw InputError(std::string(argument).append(": ").append(expected_name<Enum>(name, list)));
}

}  // namespace nsimplex
