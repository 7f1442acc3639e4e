#include "cli/run_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "io/file_bytes.h"
#include "io/folders.h"
#include "support/error.h"
#include "support/printable.h"
#include "support/utf8.h"

namespace nsimplex::cli {
namespace {

namespace fs = std::filesystem;

// Whether a run that begins anew would lose something: a file without lines holds nothing, and the
// same command leaves the same config.toml when it is ended before its first line.
bool holds_a_run(const fs::path& file, const CommonOptions& options) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return false;
  if (!fs::is_regular_file(file, ignored)) return true;
  if (file.filename() == kConfigFile) {
    const std::string path = file.string();
    return access(path.c_str(), R_OK) != 0 || io::read_text(path) != config_file(options);
  }
  return fs::file_size(file, ignored) > 0;
}

}  // namespace

std::string config_file(const CommonOptions& options) {
  return "# " + options.command_line + "\n" + options.config_toml;
}

void refuse_earlier_run(const CommonOptions& options, const std::vector<std::string>& files) {
  if (options.out.empty()) return;
  if (!is_utf8(options.config_toml)) {
    throw InputError("--out: config.toml would hold every option as UTF-8, and one is not: " +
                     options.command_line);
  }
  if (options.overwrite) return;
  std::vector<std::string> names = {"metrics.jsonl", "config.toml", "checkpoint.safetensors"};
  names.insert(names.end(), files.begin(), files.end());
  for (const std::string& name : names) {
    if (!holds_a_run(fs::path(options.out) / name, options)) continue;
    throw InputError(fmt::format(
        "--out: {} is not empty: {} of an earlier run would be lost; name another folder, {}or "
        "write over it with --overwrite",
        options.out, name,
        can_continue(options, options.out)
            ? fmt::format("continue that run with --resume {}, ", options.out)
            : ""));
  }
}

bool can_continue(const CommonOptions& options, const std::string& folder) {
  std::error_code ignored;
  if (options.resumes_by.empty() || !fs::exists(fs::path(folder) / options.resumes_by, ignored))
    return false;
  const std::string config = (fs::path(folder) / kConfigFile).string();
  try {
    return is_command(options.command_name, io::read_text(config));
  } catch (const InputError&) {
    return false;
  }
}

void say_how_to_continue(const CommonOptions& options) {
  const std::string& folder = options.resume.empty() ? options.out : options.resume;
  if (folder.empty() || !can_continue(options, folder)) return;
  fmt::print(stderr, "saved; continue with: {} --resume {}\n", options.command_name,
             printable(folder));
}

void make_run_directory(const std::string& path) {
  try {
    io::create_folders(path);
  } catch (const InputError& error) {
    throw InputError(std::string("--out: ") + error.what());
  }
  if (access(path.c_str(), W_OK | X_OK) != 0) {
    throw InputError(fmt::format("--out: cannot write to '{}': permission denied", path));
  }
}

}  // namespace nsimplex::cli
