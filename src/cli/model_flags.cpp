// The options that describe a language model.

#include "cli/model_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "attention/common/attention_names.h"
#include "cli/options.h"
#include "nn/language_options.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

// Adds the flag of one option of the model.
class FlagAdder {
 public:
  FlagAdder(CLI::App& command, ModelFlags& flags, const std::string& window,
            const std::vector<std::string>& without)
      : command_(command), flags_(flags), window_(window), without_(without) {}

  template <class Value>
  void operator()(const std::string& flag, Value& value, const std::string& text) {
    if (flag.empty() || std::ranges::count(without_, flag) > 0) return;
    if constexpr (std::is_same_v<Value, std::vector<Window>>) {
      add_list(flag, flags_.window, text + "; default: " + window_);
    } else if constexpr (std::is_same_v<Value, std::vector<int64_t>>) {
      add_list(flag, value, text);
    } else if (flag == "--untied") {
      option_adder(command_, kGroup)(flag, flags_.untied, text);
    } else {
      option_adder(command_, kGroup)(flag, value, text);
    }
  }

 private:
  static constexpr char kGroup[] = "Model";

  void add_list(const std::string& flag, std::vector<int64_t>& numbers, const std::string& text) {
    command_.add_option(flag, numbers, text)->delimiter(',')->group(kGroup);
  }

  CLI::App& command_;
  ModelFlags& flags_;
  const std::string& window_;
  const std::vector<std::string>& without_;
};

}  // namespace

void add_model_flags(CLI::App& command, ModelFlags& flags, const std::string& window,
                     const std::vector<std::string>& without) {
  FlagAdder add(command, flags, window, without);
#define NSIMPLEX_FLAG(type, name, initial, flag, text, ...) add(flag, flags.model.name, text);
  NSIMPLEX_LANGUAGE_MODEL_OPTIONS(NSIMPLEX_FLAG)
#undef NSIMPLEX_FLAG
}

void refuse_unused(const ModelFlags& flags) {
  LanguageModelOptions given = flags.model;
  if (!flags.window.empty()) given.window.clear();  // differs from the default
  for (const LanguageOption& option : unused_options(given)) {
    std::string used;
    for (size_t i = 0; i < option.used_with.size(); ++i) {
      used += i == 0 ? "" : i + 1 < option.used_with.size() ? ", " : " or ";
      used += name_of(option.used_with[i]);
    }
    throw InputError(fmt::format("{}: expected --sparse {} with it, got {}", option.flag, used,
                                 name_of(given.sparse)));
  }
}

std::string with_flags(std::string message) {
  constexpr std::string_view kModel = "[LanguageModel] ";
  if (!message.starts_with(kModel)) return message;
  message.erase(0, kModel.size());
  for (const LanguageOption& option : language_options()) {
    const std::string start = fmt::format("{}: ", option.name);
    if (option.flag.empty() || !message.starts_with(start)) continue;
    return fmt::format("{}: {}", option.flag, message.substr(start.size()));
  }
  return message;
}

LanguageModelOptions language_model_options(const ModelFlags& flags, int64_t vocabulary) {
  LanguageModelOptions model = flags.model;
  model.vocabulary = vocabulary;
  model.tied = !flags.untied;
  model.window.clear();
  for (const int64_t keys : flags.window) model.window.push_back(Window::last(keys));
  if (!flags.window.empty()) return model;
  model.window = default_windows(detail::most_axes(model));
  if (model.sparse != Sparsity::window && has_part(model.sparse, "window")) {
    model.window = {model.window.front()};
  }
  return model;
}

}  // namespace nsimplex::cli
