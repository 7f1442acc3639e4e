// Manages the folder of a run: result lines, resumption and checks of the input files.

#include "cli/run_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>

#include "cli/output.h"
#include "cli/run_writers.h"
#include "cli/text_flags.h"
#include "io/input_file.h"
#include "io/output_file.h"
#include "io/safetensors_header.h"
#include "support/error.h"
#include "support/log.h"
#include "support/printable.h"

namespace nsimplex::cli {
namespace {

namespace fs = std::filesystem;

// Whether a new run would lose something. A file without lines holds nothing, and the same command
// leaves the same config.toml if it is ended before its first line.
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
    throw InputError("--out: expected options in UTF-8, since config.toml holds them, got " +
                     options.command_line);
  }
  if (options.overwrite) return;
  std::vector<std::string> names = {"metrics.jsonl", "config.toml", "checkpoint.safetensors"};
  names.insert(names.end(), files.begin(), files.end());
  for (const std::string& name : names) {
    if (!holds_a_run(fs::path(options.out) / name, options)) continue;
    throw InputError(fmt::format(
        "--out: {} is not empty: {} of an earlier run would be lost; name another folder, {}or "
        "overwrite it with --overwrite",
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

bool is_repeated(const CommonOptions& options) {
  if (!options.ranks->repeats() || options.out.empty() || !can_continue(options, options.out)) {
    return false;
  }
  return io::read_text((fs::path(options.out) / kConfigFile).string()) == config_file(options);
}

void say_how_to_continue(const CommonOptions& options) {
  const std::string& folder = options.folder();
  if (folder.empty() || !can_continue(options, folder)) return;
  print_error(fmt::format("saved; continue with: {} --resume {}\n", options.command_name,
                          printable(folder)));
}

namespace {

constexpr char kRuns[] = "runs";

// The stem of a file as a part of a folder's name.
std::string plain_stem(const std::string& input) {
  constexpr size_t kLongest = 40;
  std::string name = fs::path(input).stem().string().substr(0, kLongest);
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    if (!plain) c = '-';
  }
  name.erase(0, name.find_first_not_of('-'));
  return name.empty() ? "run" : name;
}

// Makes the first of PATH, PATH-2, PATH-3, .. that does not exist and returns it.
std::string make_new_folder(const std::string& path) {
  io::create_folders(fs::path(path).parent_path().string());
  std::string name = path;
  for (int number = 2; mkdir(name.c_str(), 0777) != 0; ++number) {
    if (errno != EEXIST) {
      throw InputError(fmt::format("cannot make '{}': {}", name, std::strerror(errno)));
    }
    name = fmt::format("{}-{}", path, number);
  }
  return name;
}

}  // namespace

NewRunFolder::NewRunFolder(CommonOptions& options, const std::string& input) {
  if (input.empty() || !options.out.empty() || !options.resume.empty()) return;
  if (options.ranks->repeats()) {
    throw InputError("--out: expected a folder that all ranks share, got none");
  }
  const std::string time = local_time("%Y-%m-%d-%H%M%S");
  try {
    path_ = make_new_folder(fmt::format("{}/{}-{}", kRuns, plain_stem(input), time));
  } catch (const InputError& error) {
    throw InputError(
        fmt::format("--out: expected a folder, since there is no other: {}", error.what()));
  }
  options.out = path_;
  options.out_is_new = true;
}

NewRunFolder::~NewRunFolder() {
  if (path_.empty()) return;
  if (rmdir(path_.c_str()) == 0) rmdir(kRuns);  // each only if it is empty
}

void make_run_directory(const CommonOptions& options) {
  try {
    io::create_folders(options.out);
  } catch (const InputError& error) {
    throw InputError(std::string("--out: ") + error.what());
  }
  if (access(options.out.c_str(), W_OK | X_OK) != 0) {
    throw InputError(fmt::format("--out: cannot write to '{}': permission denied", options.out));
  }
  if (!options.out_is_new) return;
  if (options.json) {
    print_json_line("folder", {{"out", options.out}});
  } else {
    log_line(fmt::format("no --out was given; the run goes to {}", options.out));
  }
}

RunLog::RunLog(const CommonOptions& options) : resumed_(options.resume), json_(options.json) {
  if (!options.ranks->writes()) return;
  show_readings();
  if (options.out.empty()) return;
  const std::string path = options.out + "/metrics.jsonl";
  make_run_directory(options);
  lock_.emplace(options.out);
  if (options.resume.empty()) {
    refuse_earlier_run(options, {});  // another run may have ended since the first check
    // Before config.toml, which marks a run that can continue.
    io::write_text(options.out + "/" + kInfoFile,
                   one_line(of_kind("info", build_and_machine())) + "\n");
    write_inputs(options);
    io::write_text(options.out + "/" + kConfigFile, config_file(options));
  }
  file_.emplace(path, options.resume.empty() ? 0 : read_earlier(path));
  io::sync_folder_of(path);
  synced_ = std::chrono::steady_clock::now();
  if (options.writers != nullptr) options.writers->begin();
}

RunLog::~RunLog() noexcept(false) {
  if (!file_) return;
  try {
    file_->sync();
  } catch (const std::exception&) {
    // An exception that is already being thrown says why the run ends. Otherwise this is the only
    // report that lines may be lost.
    if (std::uncaught_exceptions() == 0) throw;
  }
}

// Reads the lines of an earlier part of the run and returns their number of bytes. A process that
// was ended leaves an unfinished line only at the end. Any other fault is damage and stays.
int64_t RunLog::read_earlier(const std::string& path) {
  if (!std::filesystem::exists(path)) return 0;
  const std::string text = io::read_text(path);
  size_t whole = 0, number = 0, broken = 0;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    ++number;
    const std::string line = text.substr(begin, end - begin);
    Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) {
      if (broken == 0) broken = number;
      continue;
    }
    if (broken > 0) {
      throw InputError(
          fmt::format("cannot continue {}: line {} is not a JSON object", path, broken));
    }
    whole = end + 1;
    known_.insert(line);
    earlier_.push_back(std::move(json));
  }
  return static_cast<int64_t>(whole);
}

void RunLog::share(training::Ranks& ranks) {
  if (ranks.size() == 1) return;
  const Json lines = Json::parse(ranks.first_text(Json(earlier_).dump()));
  earlier_.assign(lines.begin(), lines.end());
}

const Json* RunLog::find(const Json& key) const {
  for (auto line = earlier_.rbegin(); line != earlier_.rend(); ++line) {
    bool agrees = true;
    for (const auto& [name, value] : key.items()) {
      const auto found = line->find(name);
      agrees = agrees && found != line->end() && *found == value;
    }
    if (agrees) return &*line;
  }
  return nullptr;
}

void RunLog::write(std::string_view kind, const Json& line, bool shown) {
  if (json_ && shown) print_json_line(kind, line);
  if (!file_) return;
  const std::string text = one_line(of_kind(kind, line));
  // Runs of version 0.1, which can be continued, have lines without a kind.
  if (known_.contains(text) || (!known_.empty() && known_.contains(one_line(line)))) return;
  file_->append(text);
  added_ = true;
  const auto now = std::chrono::steady_clock::now();
  if (now - synced_ < std::chrono::seconds(1)) return;
  file_->sync();
  synced_ = now;
}

void RunLog::sync() {
  if (file_) file_->sync();
}

void RunLog::say_if_finished() const {
  if (resumed_.empty() || added_ || json_ || !file_) return;
  log_line(fmt::format("the run in {} had been finished; nothing was left to do", resumed_));
}

namespace {

namespace fs = std::filesystem;

// One input in kInputsFile: {"file": "cells.csv", "bytes": 1234, "checksum": "0a1b2c3d"}. Absent
// for a word that is not a file, for example the name of a column instead of one.
std::optional<Json> input_of(const std::string& path) {
  std::error_code ignored;
  const bool file_or_stdin = path == "-" || fs::is_regular_file(path, ignored);
  if (!file_or_stdin) return std::nullopt;
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
