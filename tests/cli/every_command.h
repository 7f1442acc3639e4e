#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/app.h"

namespace nsimplex::cli::testing {

using Words = std::vector<std::string>;

/// The command line, parsed in this process: no command runs.
class ParsedLine {
 public:
  ParsedLine() : app_(make_app(session_)) {}

  /// Words after "nsimplex"; the error, or nothing.
  std::string parse(Words words);

  /// The command that these words name.
  CLI::App& command(const Words& path);

  /// What the words that were parsed ask for.
  const Session& session() const { return session_; }

  /// Words that name each command, as the command line itself lists them.
  std::vector<Words> commands();

 private:
  Session session_;
  std::unique_ptr<CLI::App> app_;
};

Words joined(Words words, const Words& more);

/// The least that a command accepts: its name and a value for what it requires.
Words least_words(ParsedLine& line, const Words& path);

}  // namespace nsimplex::cli::testing
