#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/app.h"
#include "lab/experiments.h"

namespace nsimplex::cli::testing {

using Words = std::vector<std::string>;

/// The command lines of both programs, parsed in this process: no command runs. As on the command
/// line of nsimplex, the word "lab" leads to nsimplex-lab.
class ParsedLine {
 public:
  ParsedLine() : product_(make_app(kProduct, session_)), lab_(make_app(lab::kProgram, session_)) {}

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
  std::unique_ptr<CLI::App> product_, lab_;
};

Words joined(Words words, const Words& more);

/// The least that a command accepts: its name and a value for what it requires.
Words least_words(ParsedLine& line, const Words& path);

}  // namespace nsimplex::cli::testing
