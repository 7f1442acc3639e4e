#include <sentencepiece_processor.h>

#include "data/tokenizer.h"
#include "support/error.h"

namespace nsimplex::data {
namespace {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(const std::string& model, const std::string& name) : model_(model) {
    const auto status = processor_.LoadFromSerializedProto(model);
    if (!status.ok()) throw InputError(name + " is not a SentencePiece model");
  }

  int64_t vocabulary() const override { return processor_.GetPieceSize(); }
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int> tokens;
    check(processor_.Encode({text.data(), text.size()}, &tokens));
    return {tokens.begin(), tokens.end()};
  }
  std::string decode(const std::vector<int32_t>& tokens) const override {
    std::string text;
    check(processor_.Decode(std::vector<int>(tokens.begin(), tokens.end()), &text));
    return text;
  }
  int32_t separator() const override { return processor_.eos_id(); }
  const std::string& model() const override { return model_; }

 private:
  static void check(const sentencepiece::util::Status& status) {
    if (!status.ok()) throw std::runtime_error("SentencePiece: " + status.ToString());
  }

  std::string model_;
  sentencepiece::SentencePieceProcessor processor_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& model, const std::string& name) {
  if (model.empty()) return byte_tokenizer();
  return std::make_unique<SentencePieceTokenizer>(model, name);
}

}  // namespace nsimplex::data
