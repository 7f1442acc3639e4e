#pragma once

#include <string_view>

namespace nsimplex {

/// Whether an environment variable is "1".
bool environment_flag(const char* name);

/// Writes "nsimplex: <message>" as one printable line to standard error.
void log_line(std::string_view message);

/// Writes "nsimplex: warning: <message>" as one line to standard error.
void log_warning(std::string_view message);

/// The same, once a process for each key.
void log_warning_once(std::string_view key, std::string_view message);

/// Tells, once for each reason and only where NSIMPLEX_WARN_FALLBACK=1, that an operator goes by
/// its reference version: right, but slow.
void warn_fallback(std::string_view operation, std::string_view reason);

}  // namespace nsimplex
