// Declares the tokens of a corpus and the sampling of batches.

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "data/text_files.h"
#include "data/tokenizer.h"
#include "io/input_file.h"

namespace nsimplex::data {

inline constexpr int64_t kMostUint16 = int64_t{1} << 16;  ///< tokens that two bytes can number

/// The tokens of several texts, one after the other. Byte tokens stay in the texts. Subword tokens
/// are encoded once into memory, with the tokenizer's separator between texts.
class Tokens {
 public:
  Tokens(const std::vector<Text>& texts, const Tokenizer& tokenizer);

  /// Files of token numbers without a header, little-endian, as nanoGPT's data scripts write them,
  /// one after the other: uint16 for a vocabulary of at most kMostUint16, else uint32. With
  /// `validation` files, split() separates these from the files before them. They are read window by
  /// window, so they may be larger than memory. Throws InputError if a file is missing, is empty,
  /// holds part of a number, or holds a number that is not below `vocabulary`. copy() and
  /// fingerprint() throw if a file has changed since. O(tokens).
  static Tokens of_files(const std::vector<std::string>& training,
                         const std::vector<std::string>& validation, int64_t vocabulary);

  int64_t size() const { return size_; }

  /// Copies tokens [begin, begin + count) to `out`; the range must lie inside.
  void copy(int64_t begin, int64_t count, int64_t* out) const;

  /// Depends only on every token and on validation_begin(): it detects a changed text on resuming.
  /// O(size()).
  uint64_t fingerprint() const;

  /// The first token of the validation files; nullopt without such files.
  std::optional<int64_t> validation_begin() const { return validation_begin_; }

 private:
  // Numbers in a file.
  template <class Number>
  struct NumberFile {
    std::shared_ptr<const io::OpenFile> file;

    int64_t size() const;
    std::vector<Number> read(int64_t begin, int64_t count) const;
  };

  // Consecutive tokens in memory or in a file.
  using Run = std::variant<std::span<const uint8_t>, std::span<const int32_t>, NumberFile<uint16_t>,
                           NumberFile<uint32_t>>;

  struct Piece {
    int64_t begin, size;
    Run run;
    std::shared_ptr<const void> owner;  // of tokens in memory
  };

  Tokens() = default;
  void append(Run run, int64_t size, std::shared_ptr<const void> owner = nullptr);
  template <class Number>
  void append_file(const std::string& path, int64_t vocabulary);

  // Calls visit(block) for `count` tokens of a run from `begin` on. Each block continues the last
  // one. No other function depends on the kind of a run.
  template <class Visit>
  static void for_each_block(const Run& run, int64_t begin, int64_t count, Visit&& visit);

  std::vector<Piece> pieces_;
  int64_t size_ = 0;
  std::optional<int64_t> validation_begin_;
};

/// A range of tokens.
struct Slice {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// The split of nanoGPT: the first 90 % of the tokens are for training, the last 10 % for
/// validation; or the validation files are. Both are contiguous, so no validation window overlaps a
/// training window. The same text is always split at the same token.
struct Split {
  Slice train, validation;
};
Split split(const Tokens& tokens);

/// Windows of tokens for next-token prediction: targets are the inputs one token later.
struct Batch {
  at::Tensor inputs, targets;  ///< int64 [B, T]
};

/// Draws windows of `context` + 1 tokens uniformly, with replacement. A counter-based generator
/// gives draw n of a seed directly, so the position in the data is one number and resuming needs
/// nothing else.
class BatchSampler {
 public:
  /// Throws InputError if `slice` is too short for one window.
  BatchSampler(const Tokens& tokens, Slice slice, int64_t batch, int64_t context, uint64_t seed);

  Batch next();

  int64_t position() const { return position_; }  ///< windows drawn so far
  void seek(int64_t position) { position_ = position; }

 private:
  const Tokens& tokens_;
  Slice slice_;
  int64_t batch_, context_;
  uint64_t seed_;
  int64_t position_ = 0;
};

/// Windows of `context` + 1 tokens at `starts` as one batch.
Batch gather(const Tokens& tokens, std::span<const int64_t> starts, int64_t context);

}  // namespace nsimplex::data
