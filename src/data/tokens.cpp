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
    for (const Text& text : texts) append({0, text.bytes, text.owner});
    return;
  }
  const auto words = std::make_shared<std::vector<int32_t>>();
  for (const Text& text : texts) {
    if (!words->empty() && tokenizer.separator() >= 0) words->push_back(tokenizer.separator());
    const auto encoded =
        tokenizer.encode({reinterpret_cast<const char*>(text.bytes.data()), text.bytes.size()});
    words->insert(words->end(), encoded.begin(), encoded.end());
  }
  append({0, std::span<const int32_t>(*words), words});
}

Tokens Tokens::of_uint16_files(const std::vector<std::string>& paths, int64_t vocabulary) {
  static_assert(std::endian::native == std::endian::little);
  Tokens tokens;
  for (const std::string& path : paths) {
    const auto file = std::make_shared<const io::OpenFile>(path);
    if (file->size() == 0 || file->size() % 2 != 0) {
      file->fail(fmt::format("expected uint16 token numbers, got {} bytes", file->size()));
    }
    const Piece piece{0, Uint16File{file}, nullptr};
    int64_t before = 0;
    for_each_block(piece, [&](auto numbers) {
      const auto largest = std::max_element(numbers.begin(), numbers.end());
      if (*largest >= vocabulary) {
        file->fail(fmt::format("expected tokens below {}, got {} at token {}", vocabulary, *largest,
                               before + (largest - numbers.begin())));
      }
      before += std::ssize(numbers);
    });
    tokens.append(piece);
  }
  return tokens;
}

int64_t Tokens::Uint16File::size() const { return file->size() / 2; }

void Tokens::Uint16File::copy(int64_t begin, int64_t count, uint16_t* out) const {
  if (file->read(2 * begin, out, 2 * count) != 2 * count) file->fail("it is shorter than it was");
  file->require_unchanged();
}

int64_t Tokens::Piece::size() const {
  return std::visit([](const auto& tokens) { return static_cast<int64_t>(tokens.size()); }, run);
}

template <class Visit>
void Tokens::for_each_block(const Piece& piece, Visit&& visit) {
  constexpr int64_t kBlock = 1 << 19;
  const auto* const numbers = std::get_if<Uint16File>(&piece.run);
  if (!numbers) {
    if (const auto* const bytes = std::get_if<std::span<const uint8_t>>(&piece.run)) visit(*bytes);
    if (const auto* const words = std::get_if<std::span<const int32_t>>(&piece.run)) visit(*words);
    return;
  }
  std::vector<uint16_t> block;
  for (int64_t begin = 0; begin < numbers->size(); begin += kBlock) {
    block.resize(static_cast<size_t>(std::min(kBlock, numbers->size() - begin)));
    numbers->copy(begin, std::ssize(block), block.data());
    visit(std::span<const uint16_t>(block));
  }
}

void Tokens::append(Piece piece) {
  piece.begin = size_;
  size_ += piece.size();
  pieces_.push_back(std::move(piece));
}

void Tokens::copy(int64_t begin, int64_t count, int64_t* out) const {
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), begin,
                                [](int64_t at, const Piece& each) { return at < each.begin; }) -
               1;
  for (; count > 0; ++piece) {
    const int64_t skip = begin - piece->begin;
    const int64_t part = std::min(count, piece->size() - skip);
    if (const auto* const numbers = std::get_if<Uint16File>(&piece->run)) {
      std::vector<uint16_t> own(static_cast<size_t>(part));
      numbers->copy(skip, part, own.data());
      std::copy(own.begin(), own.end(), out);
    } else if (const auto* const bytes = std::get_if<std::span<const uint8_t>>(&piece->run)) {
      std::copy_n(bytes->begin() + skip, part, out);
    } else {
      std::copy_n(std::get<std::span<const int32_t>>(piece->run).begin() + skip, part, out);
    }
    begin += part;
    out += part;
    count -= part;
  }
}

uint64_t Tokens::fingerprint() const {
  // FNV-1a over whole tokens: a check against mistakes, not against malice.
  uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](auto run) {
    for (const auto token : run) hash = (hash ^ static_cast<uint64_t>(token)) * 0x100000001b3u;
  };
  for (const Piece& piece : pieces_) for_each_block(piece, add);
  return hash;
}

Split split(const Tokens& tokens) {
  // In integers, since 0.9 * size would round differently for different sizes.
  const int64_t boundary = tokens.size() - tokens.size() / 10;
  return {{0, boundary}, {boundary, tokens.size()}};
}

}  // namespace nsimplex::data
