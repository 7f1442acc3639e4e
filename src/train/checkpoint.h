#pragma once

#include <nsimplex/language_model.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "train/training_options.h"

namespace nsimplex::training {

/// Where the training text came from, and what it was.
struct TextRecord {
  std::vector<std::string> sources;  ///< as they were given
  std::string glob = "*";
  int64_t tokens = 0;
  uint64_t fingerprint = 0;                                ///< of all tokens
  std::vector<std::string> token_files, validation_files;  ///< in place of sources
};

/// How far a run has come.
struct Progress {
  int64_t step = 0;      ///< updates done
  int64_t position = 0;  ///< windows drawn from the training text
  // Of the steps since the last line of metrics.jsonl.
  double loss_sum = 0.0;
  int64_t loss_steps = 0;
  double auxiliary_sum = 0.0;  ///< the indexers' losses
};

/// All that resuming a run needs; one file. Holds no time and no name of a machine, so that equal
/// runs write equal bytes.
struct Checkpoint {
  LanguageModelOptions model;
  TrainingOptions training;
  TextRecord text;
  Progress progress;
  std::string tokenizer;           ///< a SentencePiece model; empty: bytes
  bool without_tokenizer = false;  ///< trained on token files, and nobody named their tokenizer
  std::vector<io::NamedTensor> weights;
  std::vector<io::NamedTensor> optimizer;
  at::Tensor generator;  ///< state of torch's CPU generator
};

/// Names within a run directory.
inline constexpr char kCheckpointFile[] = "checkpoint.safetensors";
inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kTokenizerFile[] = "tokenizer.model";
inline constexpr char kMetricsFile[] = "metrics.jsonl";

/// Replaces the run's checkpoint atomically, then what is derived from it: model.safetensors, with
/// the plain weights by their names and the model's options in the header, and tokenizer.model
/// where there is one.
void write_checkpoint(const std::string& folder, const Checkpoint& checkpoint);
void write_model(const std::string& folder, const Checkpoint& checkpoint);

/// Reads a checkpoint. Throws InputError when the file is missing, damaged or not a checkpoint.
Checkpoint read_checkpoint(const std::string& path);

/// A model to evaluate or to sample from.
struct SavedModel {
  LanguageModelOptions options;
  std::vector<io::NamedTensor> weights;
  int64_t step = 0;       ///< updates behind it
  std::string tokenizer;  ///< as in Checkpoint
  bool without_tokenizer = false;
  TextRecord text;  ///< empty when read from model.safetensors
};

/// Reads a model from a run directory (its checkpoint), from a checkpoint or from a
/// model.safetensors.
SavedModel read_model(const std::string& path);

/// Copies `values` into the tensors of the same names. Throws InputError, which calls the values'
/// origin `origin`, unless names and shapes are the same on both sides.
void copy_into(const std::vector<io::NamedTensor>& tensors,
               const std::vector<io::NamedTensor>& values, const std::string& origin);

}  // namespace nsimplex::training
