// `nsimplex analyze attention`: the tuples of a text that a trained language model attends to.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "cli/commands.h"
#include "cli/lm_command.h"
#include "cli/model_program.h"
#include "cli/output.h"
#include "io/input_file.h"
#include "support/error.h"
#include "support/log.h"

namespace nsimplex::cli {
namespace {

struct AttentionCommand : CommonOptions {
  std::string model, text, page, svg;
  std::optional<int64_t> layer, query;
  int64_t head = 0, count = 10, context = 0;
};

constexpr int64_t kMostShown = 256;  // default limit, since time grows with the tuples of a query
constexpr int64_t kLargestNumber = 1 << 20;

Json text_of_tokens(const AttentionCommand& o) {
  const LoadedModel loaded = load_model(o.model, c10::kCPU);
  const std::string text = o.text == "-" ? io::read_text("-") : o.text;
  std::vector<int32_t> tokens = loaded.tokenizer->encode(text);
  if (tokens.empty()) throw InputError("TEXT: expected at least one token, got none");
  const int64_t limit =
      o.context > 0 ? o.context : std::min(loaded.model->options().context, kMostShown);
  const auto read = static_cast<int64_t>(tokens.size());
  if (read > limit) {
    log_line(fmt::format("warning: the text has {} tokens; the last {} are shown (--context)", read,
                         limit));
    tokens.erase(tokens.begin(), tokens.end() - limit);
  }
  std::vector<std::string> labels;
  for (const int32_t token : tokens) labels.push_back(loaded.tokenizer->decode({token}));
  return {{"tokens", tokens}, {"labels", labels}};
}

Json or_null(const std::optional<int64_t>& number) { return number ? Json(*number) : Json(); }

int run_attention(const AttentionCommand& o) {
  ModelProgram program{.python = {.command = "analyze attention",
                                  .module = "nsimplex.model_command.attended_tuples",
                                  .package = "",
                                  .extra = "",
                                  .arguments = {}},
                       .request = {{"model", o.model},
                                   {"threads", o.threads},
                                   {"layer", or_null(o.layer)},
                                   {"head", o.head},
                                   {"query", or_null(o.query)},
                                   {"count", o.count},
                                   {"page", !o.page.empty()},
                                   {"svg", !o.svg.empty()}},
                       .given = {},
                       .files = {{"--page", o.page}, {"--svg", o.svg}}};
  check_files(program);
  program.given = text_of_tokens(o);
  return run_model_program(program, o.json, [&](const Json& line) {
    if (o.json) print_json_line("attention_tuple", line);
  });
}

}  // namespace

void add_analyze_attention(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<AttentionCommand>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "attention",
       .summary = "Show which tuples of a text a trained language model attends to",
       .examples = "nsimplex analyze attention runs/first 'To be, or not to be'\n"
                   "nsimplex analyze attention runs/first - --page attention.html < text.txt\n"
                   "nsimplex analyze attention runs/first 'a text' --layer 1 --svg layer1.svg",
       .acts = {.out = false, .seed = false}},
      options, run_attention);
  AttentionCommand& o = *options;
  add_argument(command, "MODEL", o.model, "Run directory, checkpoint or model.safetensors");
  add_argument(command, "TEXT", o.text, "The text itself, or - for standard input");
  const auto number = within(int64_t{0}, kLargestNumber);
  command.add_option("--layer", o.layer, "Attention layer, from 0; default: the last one")
      ->check(number)
      ->group("View");
  command.add_option("--query", o.query, "Token whose tuples are shown; default: the last one")
      ->check(number)
      ->group("View");
  const auto add = option_adder(command, "View");
  add("--head", o.head, "Head, from 0")->check(number);
  add("--count", o.count, "Tuples per query and head")->check(within(int64_t{1}, int64_t{1000}));
  add("--context", o.context,
      "Most tokens, the last of the text; 0: the model's context, at most 256")
      ->check(number);
  const auto add_file = [&](const char* name, std::string& path, const char* text) {
    command.add_option(name, path, text)->type_name("FILE")->group("Files");
  };
  add_file("--svg", o.svg, "Drawing of the tuples that are shown");
  add_file("--page", o.page, "Interactive HTML page of all layers and heads, which loads nothing");
}

}  // namespace nsimplex::cli
