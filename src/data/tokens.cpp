#include "data/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "io/mapped_file.h"
#include "support/error.h"

namespace nsimplex::data {

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
    const auto file = std::make_shared<io::MappedFile>(path);
    const std::span<const uint8_t> bytes = file->bytes();
    if (bytes.empty() || bytes.size() % 2 != 0) {
      throw InputError(fmt::format("cannot read {}: expected uint16 token numbers, got {} bytes",
                                   path, bytes.size()));
    }
    const std::span numbers(reinterpret_cast<const uint16_t*>(bytes.data()), bytes.size() / 2);
    const auto largest = std::max_element(numbers.begin(), numbers.end());
    if (*largest >= vocabulary) {
      throw InputError(fmt::format("cannot read {}: expected tokens below {}, got {} at token {}",
                                   path, vocabulary, *largest, largest - numbers.begin()));
    }
    tokens.append({0, numbers, file});
  }
  return tokens;
}

int64_t Tokens::Piece::size() const {
  return std::visit([](auto tokens) { return static_cast<int64_t>(tokens.size()); }, run);
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
    std::visit([&](auto tokens) { std::copy_n(tokens.begin() + skip, part, out); }, piece->run);
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
  for (const Piece& piece : pieces_) std::visit(add, piece.run);
  return hash;
}

Split split(const Tokens& tokens) {
  // In whole numbers: 0.9 * size would round differently from size to size.
  const int64_t boundary = tokens.size() - tokens.size() / 10;
  return {{0, boundary}, {boundary, tokens.size()}};
}

}  // namespace nsimplex::data
