// Opens the texts of files and folders, without binary files.

#include "data/text_files.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>

#include "io/input_file.h"
#include "support/error.h"

namespace nsimplex::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSniff = 64 * 1024;

bool is_binary(const Text& text) {
  const auto head = text.bytes.first(std::min(text.bytes.size(), kSniff));
  return std::find(head.begin(), head.end(), 0) != head.end();
}

Text open_file(const std::string& path) {
  const auto file = std::make_shared<io::FileBytes>(path);
  return {path, file->bytes(), file};
}

void require_text(const Text& text) {
  const std::string name = text.name == "-" ? "standard input" : text.name;
  if (text.bytes.empty()) throw InputError(name + " is empty");
  if (is_binary(text)) throw InputError(name + " is not text: it holds zero bytes");
}

std::vector<std::string> matching_files(const std::string& folder, const std::string& glob) {
  const bool whole_path = glob.find('/') != std::string::npos;
  std::vector<std::string> paths;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.starts_with('.')) {
      entry.disable_recursion_pending();
      continue;
    }
    const std::string subject =
        whole_path ? entry->path().lexically_relative(folder).string() : name;
    if (entry->is_regular_file(error) && ::fnmatch(glob.c_str(), subject.c_str(), 0) == 0) {
      paths.push_back(entry->path());
    }
    error.clear();  // a dangling link is not a text, and not a reason to stop
  }
  if (error) throw InputError("cannot read " + folder + ": " + error.message());
  std::sort(paths.begin(), paths.end());
  return paths;
}

void open_folder(const std::string& folder, const std::string& glob, std::vector<Text>& texts) {
  const std::vector<std::string> paths = matching_files(folder, glob);
  if (paths.empty()) throw InputError(folder + " has no file that matches '" + glob + "'");
  const size_t before = texts.size();
  for (const std::string& path : paths) {
    Text text = open_file(path);
    if (!text.bytes.empty() && !is_binary(text)) texts.push_back(std::move(text));
  }
  if (texts.size() == before) {
    throw InputError(folder + " has no text: all " + std::to_string(paths.size()) +
                     " files that match '" + glob + "' are empty or binary");
  }
}

}  // namespace

std::vector<Text> open_texts(const std::vector<std::string>& sources, const std::string& glob) {
  if (sources.empty()) throw InputError("no text given");
  std::vector<Text> texts;
  for (const std::string& source : sources) {
    if (source != "-" && fs::is_directory(source)) {
      open_folder(source, glob, texts);
    } else {
      texts.push_back(open_file(source));
      require_text(texts.back());
    }
  }
  return texts;
}

}  // namespace nsimplex::data
