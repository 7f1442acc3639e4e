#include "data/tokenizer.h"
#include "support/error.h"

// Takes the place of sentencepiece_tokenizer.cpp where the library was not found.
namespace nsimplex::data {

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& model, const std::string& name) {
  if (model.empty()) return byte_tokenizer();
  throw InputError(
      name + ": this build has no SentencePiece (install libsentencepiece-dev and build again)");
}

}  // namespace nsimplex::data
