#include "data/tokenizer.h"

namespace nsimplex::data {
namespace {

class ByteTokenizer final : public Tokenizer {
 public:
  int64_t vocabulary() const override { return 256; }
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    tokens.reserve(text.size());
    for (const char byte : text) tokens.push_back(static_cast<uint8_t>(byte));
    return tokens;
  }
  std::string decode(const std::vector<int32_t>& tokens) const override {
    return {tokens.begin(), tokens.end()};
  }
  bool is_bytes() const override { return true; }
  const std::string& model() const override { return model_; }

 private:
  std::string model_;
};

// U+FFFD, which decoders put where bytes do not make a character yet.
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

}  // namespace

std::unique_ptr<Tokenizer> byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

std::string StreamDecoder::next(int32_t token) {
  tokens_.push_back(token);
  const std::string text = tokenizer_.decode(tokens_);
  if (!tokenizer_.is_bytes() && text.ends_with(kReplacement)) return "";
  const std::string added = text.substr(shown_.size());
  // One token stays as context: a subword model drops the space before its first token.
  tokens_ = {token};
  shown_ = tokenizer_.decode(tokens_);
  return added;
}

std::string StreamDecoder::finish() {
  const std::string text = tokenizer_.decode(tokens_);
  const std::string added = text.substr(shown_.size());
  shown_ = text;
  return added;
}

}  // namespace nsimplex::data
