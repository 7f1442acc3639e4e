// Writes warnings to standard error, and reads flags from the environment.

#include "support/log.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

#include "support/printable.h"

namespace nsimplex {

bool environment_flag(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && std::string_view(value) == "1";
}

void log_line(std::string_view message) {
  std::string line = "nsimplex: ";
  line.append(printable(message)).append("\n");
  // one call, so that lines of different threads do not mix
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void log_warning(std::string_view message) { log_line(std::string("warning: ").append(message)); }

void log_warning_once(std::string_view key, std::string_view message) {
  static std::mutex mutex;
  static std::set<std::string> told;
  const std::lock_guard lock(mutex);
  if (told.emplace(key).second) log_warning(message);
}

void warn_fallback(std::string_view operation, std::string_view reason) {
  static const bool wanted = environment_flag("NSIMPLEX_WARN_FALLBACK");
  if (!wanted) return;

  std::string message(operation);
  message.append(" uses the reference version: ").append(reason);
  log_warning_once(message, message);
}

}  // namespace nsimplex
