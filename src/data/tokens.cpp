// Stores the tokens of texts and token files, and samples training batches from them.

#include "data/tokens.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "support/error.h"
#include "support/random.h"

namespace nsimplex::data {

Batch gather(const Tokens& tokens, std::span<const int64_t> starts, int64_t context) {
  const int64_t rows = static_cast<int64_t>(starts.size());
  const at::Tensor windows = at::empty({rows, context + 1}, at::kLong);
  int64_t* out = windows.mutable_data_ptr<int64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    tokens.copy(starts[row], context + 1, out + row * (context + 1));
  }
  return {windows.narrow(1, 0, context), windows.narrow(1, 1, context)};
}

BatchSampler::BatchSampler(const Tokens& tokens, Slice slice, int64_t batch, int64_t context,
                           uint64_t seed)
    : tokens_(tokens), slice_(slice), batch_(batch), context_(context), seed_(seed) {
  if (slice.size() <= context) {
    throw InputError("the training text has " + std::to_string(slice.size()) +
                     " tokens: too short for a context of " + std::to_string(context));
  }
}

Batch BatchSampler::next() {
  std::vector<int64_t> starts(static_cast<size_t>(batch_));
  const uint64_t choices = static_cast<uint64_t>(slice_.size() - context_);
  for (int64_t& start : starts) {
    start =
        slice_.begin + static_cast<int64_t>(random_below(choices, random_bits(seed_, position_++)));
  }
  return gather(tokens_, starts, context_);
}

Tokens::Tokens(const std::vector<Text>& texts, const Tokenizer& tokenizer) {
  if (tokenizer.is_bytes()) {
    for (const Text& text : texts) append(text.bytes, std::ssize(text.bytes), text.owner);
    return;
  }
  const auto words = std::make_shared<std::vector<int32_t>>();
  for (const Text& text : texts) {
    if (!words->empty() && tokenizer.separator() >= 0) words->push_back(tokenizer.separator());
    const auto encoded =
        tokenizer.encode({reinterpret_cast<const char*>(text.bytes.data()), text.bytes.size()});
    words->insert(words->end(), encoded.begin(), encoded.end());
  }
  append(std::span<const int32_t>(*words), std::ssize(*words), words);
}

Tokens Tokens::of_files(const std::vector<std::string>& training,
                        const std::vector<std::string>& validation, int64_t vocabulary) {
  static_assert(std::endian::native == std::endian::little);
  Tokens tokens;
  const auto append = [&](const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      if (vocabulary <= kMostUint16) {
        tokens.append_file<uint16_t>(path, vocabulary);
      } else {
        tokens.append_file<uint32_t>(path, vocabulary);
      }
    }
  };
  append(training);
  if (!validation.empty()) tokens.validation_begin_ = tokens.size();
  append(validation);
  return tokens;
}

template <class Number>
void Tokens::append_file(const std::string& path, int64_t vocabulary) {
  const auto file = std::make_shared<const io::OpenFile>(path);
  constexpr int64_t kWidth = sizeof(Number);
  if (file->size() == 0 || file->size() % kWidth != 0) {
    file->fail(
        fmt::format("expected uint{} token numbers, got {} bytes", 8 * kWidth, file->size()));
  }
  const NumberFile<Number> numbers_in_file{file};
  const int64_t count = numbers_in_file.size();
  int64_t before = 0;
  for_each_block(numbers_in_file, 0, count, [&](const auto& numbers) {
    const auto largest = std::max_element(numbers.begin(), numbers.end());
    if (static_cast<int64_t>(*largest) >= vocabulary) {
      file->fail(fmt::format("expected tokens below {}, got {} at token {}", vocabulary, *largest,
                             before + (largest - numbers.begin())));
    }
    before += std::ssize(numbers);
  });
  append(numbers_in_file, count);
}

template <class Number>
int64_t Tokens::NumberFile<Number>::size() const {
  return file->size() / static_cast<int64_t>(sizeof(Number));
}

template <class Number>
std::vector<Number> Tokens::NumberFile<Number>::read(int64_t begin, int64_t count) const {
  constexpr int64_t kWidth = sizeof(Number);
  std::vector<Number> numbers(static_cast<size_t>(count));
  if (file->read(kWidth * begin, numbers.data(), kWidth * count) != kWidth * count)
    file->fail("it is shorter than it was");
  file->require_unchanged();
  return numbers;
}

template <class Visit>
void Tokens::for_each_block(const Run& any, int64_t begin, int64_t count, Visit&& visit) {
  constexpr int64_t kBlock = 1 << 19;
  std::visit(
      [&](const auto& run) {
        if constexpr (requires { run.subspan(0); }) {
          visit(run.subspan(static_cast<size_t>(begin), static_cast<size_t>(count)));
        } else {
          for (const int64_t end = begin + count; begin < end; begin += kBlock)
            visit(run.read(begin, std::min(kBlock, end - begin)));
        }
      },
      any);
}

void Tokens::append(Run run, int64_t size, std::shared_ptr<const void> owner) {
  pieces_.push_back({size_, size, std::move(run), std::move(owner)});
  size_ += size;
}

void Tokens::copy(int64_t begin, int64_t count, int64_t* out) const {
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), begin,
                                [](int64_t at, const Piece& each) { return at < each.begin; }) -
               1;
  for (; count > 0; ++piece) {
    const int64_t skip = begin - piece->begin;
    const int64_t part = std::min(count, piece->size - skip);
    for_each_block(piece->run, skip, part,
                   [&](const auto& block) { out = std::copy(block.begin(), block.end(), out); });
    begin += part;
    count -= part;
  }
}

uint64_t Tokens::fingerprint() const {
  // FNV-1a over whole tokens: a check against mistakes, not against malice.
  uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](uint64_t number) { hash = (hash ^ number) * 0x100000001b3u; };
  for (const Piece& piece : pieces_) {
    for_each_block(piece.run, 0, piece.size, [&](const auto& run) {
      for (const auto token : run) add(static_cast<uint64_t>(token));
    });
  }
  if (validation_begin_) add(static_cast<uint64_t>(*validation_begin_));
  return hash;
}

Split split(const Tokens& tokens) {
  // In integers, since 0.9 * size would round differently for different sizes.
  const int64_t boundary = tokens.validation_begin().value_or(tokens.size() - tokens.size() / 10);
  return {{0, boundary}, {boundary, tokens.size()}};
}

}  // namespace nsimplex::data
