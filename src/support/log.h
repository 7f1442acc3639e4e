// Declares warnings on standard error, among them the one for a fallback to the reference.

#pragma once

#include <string_view>

namespace nsimplex {

/// Whether an environment variable is "1".
bool environment_flag(const char* name);

/// Writes "nsimplex: <message>" as one printable line to standard error.
void log_line(std::string_view message);

/// Writes "nsimplex: warning: <message>" as one line to standard error.
void log_warning(std::string_view message);

/// The same, once per process for each key.
void log_warning_once(std::string_view key, std::string_view message);

/// Reports that an operator uses its reference version, which is correct but slow. It reports each
/// reason once, and only if NSIMPLEX_WARN_FALLBACK=1.
void warn_fallback(std::string_view operation, std::string_view reason);

}  // namespace nsimplex
