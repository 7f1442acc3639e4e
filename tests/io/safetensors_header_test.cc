#include "io/safetensors_header.h"

#include <gmock/gmock.h>

#include "input_error_of.h"
#include "io/samples.h"

namespace nsimplex::io {
namespace {

using test::input_error_of;
using testing::ElementsAre;

std::string file_of(const std::string& header, const std::string& data = "") {
  return raw<uint64_t>({header.size()}) + header + data;
}

std::string header_error(const std::string& header, const std::string& data = "") {
  const std::string file = file_of(header, data);
  return input_error_of([&] { parse_safetensors_header(source_of(file)); });
}

TEST(SafetensorsHeader, ReadsTensorsInTheOrderOfTheirData) {
  const std::string file = file_of(
      R"({"b":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]},"__metadata__":{"kind":"x"},)"
      R"("a":{"more":[{"dtype":1},[]],"data_offsets":[0,4],"dtype":"I16","shape":[2],"z":null}} )",
      std::string(12, '\0'));
  const SafetensorsHeader header = parse_safetensors_header(source_of(file));
  ASSERT_EQ(header.entries.size(), 2u);
  EXPECT_EQ(header.entries[0].name, "a");
  EXPECT_EQ(header.entries[0].type, SafetensorsType::i16);
  EXPECT_EQ(header.entries[1].begin, 4u);
  EXPECT_THAT(header.entries[1].shape, ElementsAre(2, 1));
  EXPECT_EQ(header.metadata.at("kind"), "x");
  EXPECT_EQ(header.data, file.size() - 12);
}

TEST(SafetensorsHeader, RefusesWhatIsGivenTwice) {
  const std::string field = R"("dtype":"F32","shape":[0],"data_offsets":[0,0])";
  EXPECT_EQ(header_error("{\"a\":{" + field + "},\"a\":{" + field + "}}"),
            "cannot read f: the header names a tensor twice: \"a\"");
  EXPECT_EQ(header_error("{\"a\":{" + field + ",\"shape\":[0]}}"),
            "cannot read f: tensor \"a\": has two fields shape");
  EXPECT_EQ(header_error(R"({"__metadata__":{"k":"1","k":"2"}})"),
            "cannot read f: __metadata__.k is given twice");
  EXPECT_EQ(header_error(R"({"__metadata__":{},"__metadata__":{}})"),
            "cannot read f: the header names a tensor twice: \"__metadata__\"");
}

TEST(SafetensorsHeader, RefusesOtherForms) {
  EXPECT_EQ(header_error("[]"), "cannot read f: the header is not a JSON object");
  EXPECT_EQ(header_error("1"), "cannot read f: the header is not a JSON object");
  EXPECT_EQ(header_error("{\"a\":[]}"),
            "cannot read f: tensor \"a\": is not described by an object");
  EXPECT_EQ(header_error(R"({"a":{"dtype":{}}})"), "cannot read f: tensor \"a\": has no dtype");
  EXPECT_EQ(header_error(R"({"a":{"shape":[[1]]}})"),
            "cannot read f: tensor \"a\": has a bad shape");
  EXPECT_EQ(header_error(R"({"a":{"data_offsets":[0,1,2]}})"),
            "cannot read f: tensor \"a\": has no data_offsets");
  EXPECT_EQ(header_error(R"({"__metadata__":{"k":{}}})"),
            "cannot read f: __metadata__.k is not a string");
  EXPECT_EQ(header_error(R"({"__metadata__":1})"), "cannot read f: __metadata__ is not an object");
  EXPECT_EQ(header_error("{} {}"), "cannot read f: the header is not JSON");
}

TEST(SafetensorsHeader, RefusesShapesThatCannotBe) {
  const auto shaped = [](const std::string& shape) {
    return header_error("{\"a\":{\"dtype\":\"U8\",\"shape\":[" + shape +
                        "],\"data_offsets\":[0,0]}}");
  };
  EXPECT_EQ(shaped("0"), "nothing was thrown");
  // Strides are products of extents, also where a shape has no elements.
  EXPECT_EQ(shaped("0,4611686018427387904,4611686018427387904"),
            "cannot read f: tensor \"a\": has a shape too large");
  std::string axes = "0";
  for (int axis = 1; axis < 64; ++axis) axes += ",1";
  EXPECT_EQ(shaped(axes), "nothing was thrown");
  EXPECT_EQ(shaped(axes + ",1"), "cannot read f: tensor \"a\": has more than 64 axes");
}

TEST(SafetensorsHeader, NamesInMessagesArePrintable) {
  EXPECT_EQ(header_error(R"({"a\u001b]0;x\u0007\n":{"dtype":"\u001b[2J"}})"),
            "cannot read f: tensor \"a\\x1b]0;x\\x07\\n\": dtype \"\\x1b[2J\" is not supported");
}

}  // namespace
}  // namespace nsimplex::io
