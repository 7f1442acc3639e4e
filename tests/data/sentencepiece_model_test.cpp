#include "data/sentencepiece_model.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <vector>

namespace nsimplex::data {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string field(int number, const std::string& bytes) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  for (size_t size = bytes.size();; size >>= 7) {
    text += static_cast<char>((size & 127) | (size > 127 ? 128 : 0));
    if (size <= 127) return text + bytes;
  }
}

std::string words(const std::vector<uint32_t>& numbers) {
  std::string bytes;
  for (const uint32_t number : numbers) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(number >> shift);
  }
  return bytes;
}

// A table that replaces the byte 'a' by the text at `value`: the root leads to unit 'a', whose base is `base`.
std::string table(uint32_t base, uint32_t value, const std::string& replacements) {
  std::vector<uint32_t> units(256 * 2);
  for (uint32_t i = 0; i < units.size(); ++i) units[i] = 0x80000000U | i;  // no label
  units[0] = 0;
  units['a'] = (('a' ^ base) << 10) | 1U << 8 | 'a';
  if (base < units.size()) units[base] = 0x80000000U | value;
  return words({static_cast<uint32_t>(4 * units.size())}) + words(units) + replacements;
}

std::string model(const std::string& table) {
  return field(1, field(1, "piece")) + field(3, field(2, table));
}

const std::string kReplacements("x\0y\0", 4);

TEST(SentencePieceModel, ATableThatStaysInsideIsAccepted) {
  EXPECT_THAT(fault_of_sentencepiece(model(table(256, 2, kReplacements))), IsEmpty());
  EXPECT_THAT(fault_of_sentencepiece(field(1, field(1, "piece"))), IsEmpty());
}

TEST(SentencePieceModel, ATableThatLeadsOutIsRefused) {
  EXPECT_THAT(fault_of_sentencepiece(model(table(512, 2, kReplacements))),
              HasSubstr("out of itself"));
  EXPECT_THAT(fault_of_sentencepiece(model(table(256, 4, kReplacements))),
              HasSubstr("behind its texts"));
  EXPECT_THAT(fault_of_sentencepiece(model(table(256, 2, "x"))), HasSubstr("do not end"));
  EXPECT_THAT(fault_of_sentencepiece(model(words({4000, 0, 0}))), HasSubstr("wrong size"));
  EXPECT_THAT(fault_of_sentencepiece(model("ab")), HasSubstr("without a size"));
}

TEST(SentencePieceModel, AMessageThatIsNoneIsRefused) {
  const std::string whole = model(table(256, 2, kReplacements));
  EXPECT_THAT(fault_of_sentencepiece(whole.substr(0, whole.size() - 1)), HasSubstr("too early"));
  EXPECT_THAT(fault_of_sentencepiece("not a model"), testing::Not(IsEmpty()));
  EXPECT_THAT(fault_of_sentencepiece(std::string(11, '\xff')), HasSubstr("64 bits"));
  EXPECT_THAT(fault_of_sentencepiece("\x0b"), HasSubstr("not in use"));  // a group
  EXPECT_THAT(fault_of_sentencepiece(""), HasSubstr("no pieces"));
}

TEST(SentencePieceModel, PiecesAreTextsWithScores) {
  EXPECT_THAT(fault_of_sentencepiece(field(1, field(1, "\xc3"))), HasSubstr("UTF-8"));
  EXPECT_THAT(fault_of_sentencepiece(field(1, field(1, "a") + "\x15" + words({0x7fc00000U}))),
              HasSubstr("finite"));
}

}  // namespace
}  // namespace nsimplex::data
