// Declares Python programs that measure a trained model.

#pragma once

#include <functional>
#include <map>
#include <string>

#include "cli/output.h"
#include "cli/python_program.h"

namespace nsimplex::cli {

/// A program of nsimplex.model_command, which measures a trained model in Python.
struct ModelProgram {
  PythonProgram python;                      ///< without arguments
  Json request;                              ///< the options that it takes
  Json given;                                ///< the text that it asks for
  std::map<std::string, std::string> files;  ///< option: path; empty paths are not written
};

/// Throws InputError if one of the files cannot be written.
void check_files(const ModelProgram& program);

/// Runs the program and returns its exit code. Lines for metrics.jsonl go to `line`, tables and
/// texts to standard output unless `json`. The files are written once the program has ended well,
/// each of them completely or not at all.
int run_model_program(const ModelProgram& program, bool json,
                      const std::function<void(const Json&)>& line);

}  // namespace nsimplex::cli
