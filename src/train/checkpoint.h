// Declares the checkpoint from which a training of a language model resumes.

#pragma once

#include <nsimplex/language_model.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "train/training_options.h"

namespace nsimplex::training {

/// The origin of the training text, and its fingerprint.
struct TextRecord {
  std::vector<std::string> sources;  ///< as the user gave them
  std::string glob = "*";
  int64_t tokens = 0;
  uint64_t fingerprint = 0;                                ///< of all tokens
  std::vector<std::string> token_files, validation_files;  ///< instead of sources
};

/// The progress of a run.
struct Progress {
  int64_t step = 0;      ///< number of updates
  int64_t position = 0;  ///< number of windows drawn from the training text
  // Sums over the steps since the last line of metrics.jsonl.
  double loss_sum = 0.0;
  int64_t loss_steps = 0;
  double auxiliary_sum = 0.0;  ///< losses of the indexers
};

/// Everything that a run needs to resume, in one file. It contains no time and no name of a
/// machine, so that equal runs write equal bytes.
struct Checkpoint {
  LanguageModelOptions model;
  TrainingOptions training;
  TextRecord text;
  Progress progress;
  std::string tokenizer;           ///< a SentencePiece model; empty: bytes
  bool without_tokenizer = false;  ///< trained on token files without a known tokenizer
  std::vector<io::NamedTensor> weights;
  std::vector<io::NamedTensor> optimizer;
  at::Tensor generator;  ///< state of torch's CPU generator
};

/// Names within a run directory.
inline constexpr char kCheckpointFile[] = "checkpoint.safetensors";
inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kTokenizerFile[] = "tokenizer.model";
inline constexpr char kMetricsFile[] = "metrics.jsonl";

/// Replaces the run's checkpoint atomically, and then the files that follow from it:
/// model.safetensors (the plain weights by name, and the model's options in the header) and, if
/// there is one, tokenizer.model.
void write_checkpoint(const std::string& folder, const Checkpoint& checkpoint);
void write_model(const std::string& folder, const Checkpoint& checkpoint);

/// Reads a checkpoint. Throws InputError if the file is missing, damaged or no checkpoint.
Checkpoint read_checkpoint(const std::string& path);

/// A model for evaluation or sampling.
struct SavedModel {
  LanguageModelOptions options;
  std::vector<io::NamedTensor> weights;
  int64_t step = 0;       ///< number of updates
  std::string tokenizer;  ///< as in Checkpoint
  bool without_tokenizer = false;
  TextRecord text;  ///< empty if it was read from model.safetensors
};

/// Reads a model from a run directory (its checkpoint, else its model.safetensors), a checkpoint or
/// a model.safetensors.
SavedModel read_model(const std::string& path);

}  // namespace nsimplex::training
