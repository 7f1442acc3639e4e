#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace nsimplex::cli {

/// Thrown when standard output was closed by its reader (`nsimplex ... | head`); the process ends
/// quietly.
struct OutputClosed : std::exception {
  const char* what() const noexcept override { return "standard output was closed"; }
};

/// Writes text to standard output at once. Results go here; everything else goes to standard error.
void print(std::string_view text);

/// A plain text table: the first column is left-aligned, the others right-aligned.
class Table {
 public:
  explicit Table(std::vector<std::string> header);
  void add(std::vector<std::string> row);
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace nsimplex::cli
