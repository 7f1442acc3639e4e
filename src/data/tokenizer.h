// Declares tokenizers and the decoding of a stream of tokens.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nsimplex::data {

/// Turns text into token numbers in [0, vocabulary()) and back.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual int64_t vocabulary() const = 0;
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  virtual std::string decode(const std::vector<int32_t>& tokens) const = 0;

  /// The token between two texts; -1: none.
  virtual int32_t separator() const { return -1; }

  /// True if token numbers are the bytes themselves, so that a text needs no encoding.
  virtual bool is_bytes() const { return false; }

  /// The model it was made from, for load_tokenizer(); empty for bytes.
  virtual const std::string& model() const = 0;
};

/// Tokens are bytes: a vocabulary of 256 that represents every input.
std::unique_ptr<Tokenizer> byte_tokenizer();

/// For a model that was trained on token numbers without their tokenizer: a text is the numbers
/// with spaces between them. For any other text, encode() throws InputError and says that the
/// tokenizer is missing.
std::unique_ptr<Tokenizer> number_tokenizer(int64_t vocabulary);

/// Subword tokens of a serialized SentencePiece model; an empty `model` gives byte_tokenizer().
/// `name` is the model's name in an InputError.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& model, const std::string& name);

/// Decodes a growing sequence of tokens piece by piece, for a terminal. next() returns the text
/// that a token adds. Bytes of an incomplete character are held back until it is complete, or until
/// finish().
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  std::string next(int32_t token);
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  std::vector<int32_t> tokens_;  // tokens whose text may still change
  std::string shown_;            // text of tokens_ already returned
};

}  // namespace nsimplex::data
