#pragma once

#include <string>
#include <vector>

#include "cli/cli11.h"
#include "cli/lm.h"
#include "training/comparison.h"

// What the commands that compare language models read.
namespace nsimplex::cli {

/// Texts, or files of token numbers.
struct CorpusFlags {
  TextOptions text;
  std::string tokenizer;
  std::vector<std::string> token_files;  ///< one, or one to train and one to validate on
  int64_t vocabulary = 0;                ///< of the token files; 0: 65536
};
void add_corpus_flags(CLI::App& command, CorpusFlags& flags);

struct OpenCorpus {
  training::Corpus corpus;
  int64_t vocabulary;
};
OpenCorpus open_corpus(const CorpusFlags& flags);

/// Two lines for people: how much text, how it is trained on.
std::string describe(const training::Corpus& corpus, const training::TrainingOptions& training,
                     int64_t context);

}  // namespace nsimplex::cli
