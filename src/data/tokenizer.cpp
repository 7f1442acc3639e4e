// Turns texts into bytes, SentencePiece tokens or written token numbers, and back.

#include "data/tokenizer.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "data/sentencepiece_model.h"
#include "data/sentencepiece_module.h"
#include "support/error.h"
#include "support/executable.h"
#include "support/printable.h"

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

class NumberTokenizer final : public Tokenizer {
 public:
  explicit NumberTokenizer(int64_t vocabulary) : vocabulary_(vocabulary) {}

  int64_t vocabulary() const override { return vocabulary_; }
  std::vector<int32_t> encode(std::string_view text) const override {
    constexpr std::string_view kBlanks = " \t\r\n";
    std::vector<int32_t> tokens;
    for (size_t begin; (begin = text.find_first_not_of(kBlanks)) != text.npos;) {
      text.remove_prefix(begin);
      const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
      text.remove_prefix(word.size());
      int32_t token = -1;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), token);
      if (error != std::errc() || end != word.data() + word.size() || token < 0 ||
          token >= vocabulary_) {
        throw InputError(fmt::format(
            "the model was trained on token files, and its tokenizer is missing: expected token "
            "numbers from 0 to {}, got {}",
            vocabulary_ - 1, quoted_name(word)));
      }
      tokens.push_back(token);
    }
    return tokens;
  }
  std::string decode(const std::vector<int32_t>& tokens) const override {
    return fmt::format("{}", fmt::join(tokens, " "));
  }
  const std::string& model() const override { return model_; }

 private:
  int64_t vocabulary_;
  std::string model_;
};

// U+FFFD, which decoders emit while bytes do not make a character yet.
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

}  // namespace

std::unique_ptr<Tokenizer> byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

std::unique_ptr<Tokenizer> number_tokenizer(int64_t vocabulary) {
  return std::make_unique<NumberTokenizer>(vocabulary);
}

std::string StreamDecoder::next(int32_t token) {
  tokens_.push_back(token);
  const std::string text = tokenizer_.decode(tokens_);
  if (!tokenizer_.is_bytes() && text.ends_with(kReplacement)) return "";
  const std::string added = text.substr(shown_.size());
  // One token remains as context: a subword model drops the space before its first token.
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

namespace {

// The module is in lib beside the program's bin. It searches its own libraries first, and its
// symbols are not visible to others. An address sanitizer refuses that order; then the shared name
// is harmless, or the sanitizer would report it.
const NsimplexSentencePiece& module(const std::string& name) {
  static const auto functions = []() -> decltype(&nsimplex_sentencepiece) {
    const auto path = executable_folder().parent_path() / "lib" / "nsimplex_sentencepiece.so";
    const int order = dlsym(RTLD_DEFAULT, "__asan_init") ? 0 : RTLD_DEEPBIND;
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | order);
    return library ? reinterpret_cast<decltype(&nsimplex_sentencepiece)>(
                         dlsym(library, "nsimplex_sentencepiece"))
                   : nullptr;
  }();
  if (!functions) {
    throw InputError(fmt::format(
        "{}: SentencePiece cannot be loaded (install libsentencepiece-dev and build again)", name));
  }
  return *functions();
}

// The result of a call of the module, or the reason for its failure.
template <typename Result>
struct Answer {
  Result result;
  std::string failure;

  // The module calls one of these two, with this object as the sink.
  static void add(void* self, const typename Result::value_type* items, size_t count) {
    static_cast<Answer*>(self)->result.assign(items, items + count);
  }
  static void fail(void* self, const char* text, size_t size) {
    static_cast<Answer*>(self)->failure.assign(text, size);
  }
  Result take(bool succeeded) {
    if (!succeeded) throw std::runtime_error("SentencePiece: " + failure);
    return std::move(result);
  }
};

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(const std::string& model, const std::string& name)
      : model_(model), module_(module(name)) {
    const std::string fault = fault_of_sentencepiece(model);
    if (!fault.empty())
      throw InputError(fmt::format("{} is not a SentencePiece model: {}", name, fault));
    processor_.reset(module_.open(model.data(), model.size()));
    if (!processor_) throw InputError(name + " is not a SentencePiece model");
  }

  int64_t vocabulary() const override { return module_.vocabulary(processor_.get()); }
  std::vector<int32_t> encode(std::string_view text) const override {
    Answer<std::vector<int32_t>> tokens;
    return tokens.take(module_.encode(processor_.get(), text.data(), text.size(), &tokens,
                                      &tokens.add, &tokens.fail));
  }
  std::string decode(const std::vector<int32_t>& tokens) const override {
    Answer<std::string> text;
    return text.take(module_.decode(processor_.get(), tokens.data(), tokens.size(), &text,
                                    &text.add, &text.fail));
  }
  int32_t separator() const override { return module_.end_of_text(processor_.get()); }
  const std::string& model() const override { return model_; }

 private:
  std::string model_;
  const NsimplexSentencePiece& module_;
  std::unique_ptr<void, void (*)(void*)> processor_{nullptr, module_.close};
};

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& model, const std::string& name) {
  if (model.empty()) return byte_tokenizer();
  return std::make_unique<SentencePieceTokenizer>(model, name);
}

}  // namespace nsimplex::data
