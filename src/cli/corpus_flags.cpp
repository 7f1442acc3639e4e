#include "cli/corpus_flags.h"

#include <fmt/format.h>

#include <filesystem>

#include "io/file_bytes.h"
#include "support/error.h"

namespace nsimplex::cli {

void add_corpus_flags(CLI::App& command, CorpusFlags& o) {
  add_text_options(command, o.text);
  command
      .add_option("--tokenizer", o.tokenizer, "SentencePiece model; without it a token is a byte")
      ->type_name("FILE")
      ->group("Text");
  command
      .add_option("--tokens", o.token_files,
                  "uint16 token files in place of texts, as nanoGPT's: to train and to validate on")
      ->type_name("FILE...")
      ->group("Text");
  command.add_option("--vocabulary", o.vocabulary, "Of --tokens; 0: 65536")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 16))
      ->capture_default_str()
      ->group("Text");
}

OpenCorpus open_corpus(const CorpusFlags& o) {
  if (o.token_files.empty()) {
    const std::string model = o.tokenizer.empty() ? "" : io::read_text(o.tokenizer);
    const auto tokenizer = data::load_tokenizer(model, o.tokenizer);
    data::Tokens tokens = open_tokens(o.text, *tokenizer);
    const data::Split split = data::split(tokens);
    return {{std::move(tokens), split}, tokenizer->vocabulary()};
  }
  if (!o.text.sources.empty()) throw InputError("--tokens: expected no --text beside it");
  if (o.token_files.size() > 2) {
    throw InputError(
        fmt::format("--tokens: expected a file to train on and one to validate on, got {} files",
                    o.token_files.size()));
  }
  const int64_t vocabulary = o.vocabulary > 0 ? o.vocabulary : int64_t{1} << 16;
  data::Tokens tokens = data::Tokens::of_uint16_files(o.token_files, vocabulary);
  data::Split split = data::split(tokens);
  if (o.token_files.size() == 2) {
    const auto first = static_cast<int64_t>(std::filesystem::file_size(o.token_files[0])) / 2;
    split = {{0, first}, {first, tokens.size()}};
  }
  return {{std::move(tokens), split}, vocabulary};
}

std::string describe(const training::Corpus& corpus, const training::TrainingOptions& o,
                     int64_t context) {
  return fmt::format(
      "text    {} tokens for training, {} for validation\n"
      "run     {} steps of {} x {} windows of {} tokens, rate {} to {}\n",
      corpus.split.train.size(), corpus.split.validation.size(), o.steps, o.batch, o.accumulate,
      context, o.lr, o.min_lr);
}

}  // namespace nsimplex::cli
