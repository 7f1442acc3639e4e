// Runs a Python program that measures a trained model, and writes its files.

#include "cli/model_program.h"

#include <utility>
#include <vector>

#include "io/output_file.h"
#include "support/error.h"

namespace nsimplex::cli {

void check_files(const ModelProgram& program) {
  for (const auto& [option, path] : program.files) {
    if (path.empty()) continue;
    try {
      const io::AtomicFile unwritten(path);
    } catch (const InputError& error) {
      throw InputError(option + ": " + error.what());
    }
  }
}

int run_model_program(const ModelProgram& program, bool json,
                      const std::function<void(const Json&)>& line) {
  std::vector<std::pair<std::string, std::string>> written;  // path, text
  std::vector<Json> shown;
  const auto take = [&](const Json& message) -> std::string {
    if (message.contains("given")) return one_line(program.given);
    if (message.contains("file")) {
      written.emplace_back(program.files.at(message["file"][0]), message["file"][1]);
    } else if (message.contains("log")) {
      line(message["log"]);
    } else {
      shown.push_back(message);
    }
    return "";
  };
  PythonProgram python = program.python;
  python.arguments = {one_line(program.request)};
  const int code = run_python(python, take);
  if (code != 0) return code;
  for (const auto& [path, text] : written) io::write_text(path, text);
  if (json) return 0;
  for (const Json& message : shown) {
    if (message.contains("table")) print(text_of_table(message["table"]));
    if (message.contains("text")) print(message["text"].get<std::string>() + "\n");
  }
  std::string paths = written.empty() ? "" : "\n";
  for (const auto& [path, text] : written) paths += path + "\n";
  print(paths);
  return 0;
}

}  // namespace nsimplex::cli
