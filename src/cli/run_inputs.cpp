#include "cli/run_inputs.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "cli/output.h"
#include "io/input_file.h"
#include "io/output_file.h"
#include "io/safetensors_header.h"
#include "support/error.h"
#include "support/printable.h"

namespace nsimplex::cli {
namespace {

namespace fs = std::filesystem;

// One input in kInputsFile: {"file": "cells.csv", "bytes": 1234, "checksum": "0a1b2c3d"}. Of words
// that are no file, as a column's name in place of one, there is nothing.
std::optional<Json> input_of(const std::string& path) {
  std::error_code ignored;
  if (path.empty() || !fs::is_regular_file(path, ignored)) return std::nullopt;
  const io::FileBytes file(path);
  return Json{
      {"file", path}, {"bytes", file.bytes().size()}, {"checksum", io::checksum(file.bytes())}};
}

Json inputs_of(const CommonOptions& options) {
  Json inputs = Json::array();
  for (const std::string* path : options.inputs) {
    if (std::optional<Json> input = input_of(*path)) inputs.push_back(std::move(*input));
  }
  return inputs;
}

std::string text_of(const std::optional<Json>& input) {
  if (!input) return "no file";
  return fmt::format("{} bytes with checksum {}", input->at("bytes").get<uint64_t>(),
                     input->at("checksum").get<std::string>());
}

std::optional<Json> find_input(const Json& inputs, const std::string& path) {
  for (const Json& input : inputs) {
    if (input.at("file") == path) return input;
  }
  return std::nullopt;
}

}  // namespace

void write_inputs(const CommonOptions& options) {
  if (options.inputs.empty()) return;
  io::write_text(options.out + "/" + kInputsFile, inputs_of(options).dump(2) + "\n");
}

void check_inputs(const CommonOptions& options) {
  const std::string path = options.resume + "/" + kInputsFile;
  std::error_code ignored;
  if (options.inputs.empty() || !fs::exists(path, ignored)) return;
  try {
    const Json began_with = Json::parse(io::read_text(path));
    for (const std::string* input : options.inputs) {
      const std::optional<Json> then = find_input(began_with, *input), now = input_of(*input);
      if (text_of(then) == text_of(now)) continue;
      throw InputError(fmt::format("cannot continue {}: {} has changed since: {} then, {} now",
                                   printable(options.resume), printable(*input), text_of(then),
                                   text_of(now)));
    }
  } catch (const Json::exception&) {
    throw InputError(
        fmt::format("cannot continue {}: {} is damaged", printable(options.resume), kInputsFile));
  }
}

}  // namespace nsimplex::cli
