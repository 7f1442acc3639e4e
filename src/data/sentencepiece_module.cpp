// The module nsimplex_sentencepiece.so, which calls SentencePiece for the tokenizer.

#include "data/sentencepiece_module.h"

#include <sentencepiece_processor.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace {

using sentencepiece::SentencePieceProcessor;

const SentencePieceProcessor& processor_of(const void* processor) {
  return *static_cast<const SentencePieceProcessor*>(processor);
}

// Runs `work`, which returns SentencePiece's status. No exception crosses the module's border.
template <typename Work>
bool answered(void* sink, NsimplexSentencePiece::TextSink fail, const Work& work) {
  std::string why;
  try {
    const sentencepiece::util::Status status = work();
    if (status.ok()) return true;
    why = status.ToString();
  } catch (const std::exception& error) {
    why = error.what();
  }
  fail(sink, why.data(), why.size());
  return false;
}

void* open(const char* model, size_t size) {
  try {
    auto processor = std::make_unique<SentencePieceProcessor>();
    return processor->LoadFromSerializedProto({model, size}).ok() ? processor.release() : nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

void close(void* processor) { delete static_cast<SentencePieceProcessor*>(processor); }

int64_t vocabulary(const void* processor) { return processor_of(processor).GetPieceSize(); }

int32_t end_of_text(const void* processor) { return processor_of(processor).eos_id(); }

bool encode(const void* processor, const char* text, size_t size, void* sink,
            NsimplexSentencePiece::TokenSink add, NsimplexSentencePiece::TextSink fail) {
  std::vector<int> tokens;
  if (!answered(sink, fail,
                [&] { return processor_of(processor).Encode({text, size}, &tokens); })) {
    return false;
  }
  add(sink, tokens.data(), tokens.size());
  return true;
}

bool decode(const void* processor, const int* tokens, size_t count, void* sink,
            NsimplexSentencePiece::TextSink add, NsimplexSentencePiece::TextSink fail) {
  std::string text;
  const std::vector<int> ids(tokens, tokens + count);
  if (!answered(sink, fail, [&] { return processor_of(processor).Decode(ids, &text); }))
    return false;
  add(sink, text.data(), text.size());
  return true;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const NsimplexSentencePiece*
nsimplex_sentencepiece() {
  static const NsimplexSentencePiece functions = {.open = open,
                                                  .close = close,
                                                  .vocabulary = vocabulary,
                                                  .end_of_text = end_of_text,
                                                  .encode = encode,
                                                  .decode = decode};
  return &functions;
}
