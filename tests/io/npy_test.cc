#include "io/npy.h"

#include <gmock/gmock.h>

#include "input_error_of.h"
#include "io/samples.h"

namespace nsimplex::io {
namespace {

using test::input_error_of;
using testing::ElementsAre;

Array parse(const std::string& file) { return parse_npy(source_of(file)); }

std::string error(const std::string& file) {
  return input_error_of([&] { parse(file); });
}

TEST(Npy, ReadsNumbersOfEveryWidth) {
  const auto integers = [](const std::string& descr, const std::string& data) {
    return parse(npy_file(descr, "(2,)", data)).integers();
  };
  EXPECT_THAT(integers("|b1", raw<uint8_t>({1, 0})), ElementsAre(1, 0));
  EXPECT_THAT(integers("|i1", raw<int8_t>({-1, 2})), ElementsAre(-1, 2));
  EXPECT_THAT(integers("<i2", raw<int16_t>({-300, 2})), ElementsAre(-300, 2));
  EXPECT_THAT(integers("<i4", raw<int32_t>({-70000, 2})), ElementsAre(-70000, 2));
  EXPECT_THAT(integers("<i8", raw<int64_t>({INT64_MIN, INT64_MAX})),
              ElementsAre(INT64_MIN, INT64_MAX));
  EXPECT_THAT(integers("|u1", raw<uint8_t>({255, 2})), ElementsAre(255, 2));
  EXPECT_THAT(integers("<u2", raw<uint16_t>({65535, 2})), ElementsAre(65535, 2));
  EXPECT_THAT(integers("<u4", raw<uint32_t>({4294967295u, 2})), ElementsAre(4294967295, 2));
  EXPECT_THAT(integers("<u8", raw<uint64_t>({INT64_MAX, 2})), ElementsAre(INT64_MAX, 2));
  EXPECT_THAT(integers("<f2", raw<uint16_t>({0x4200, 0xc000})), ElementsAre(3, -2));
  EXPECT_THAT(integers("<f4", raw<float>({3, -2})), ElementsAre(3, -2));
  EXPECT_THAT(integers("<f8", raw<double>({0x1p53, -2})), ElementsAre(int64_t{1} << 53, -2));

  EXPECT_THAT(parse(npy_file("<f4", "(2,)", raw<float>({0.5, -2}))).doubles(),
              ElementsAre(0.5, -2));
  EXPECT_THAT(parse(npy_file("<u8", "(1,)", raw<uint64_t>({UINT64_MAX}))).doubles(),
              ElementsAre(0x1p64));
  EXPECT_THAT(parse(npy_file("|i1", "(1,)", raw<int8_t>({-7}))).doubles(), ElementsAre(-7));
}

TEST(Npy, ReadsStrings) {
  EXPECT_THAT(parse(npy_file("|S3", "(2,)", std::string("ab\0xyz", 6))).strings(),
              ElementsAre("ab", "xyz"));
  const std::string wide = raw<uint32_t>({'a', 0, 0xe9, 0x20ac, 0x1f600, 'z'});
  EXPECT_THAT(parse(npy_file("<U2", "(3,)", wide)).strings(),
              ElementsAre("a", "\xc3\xa9\xe2\x82\xac", "\xf0\x9f\x98\x80z"));
}

TEST(Npy, ReadsEveryVersionAndShape) {
  for (const int version : {1, 2, 3}) {
    const Array array = parse(npy_file("<i4", "(2, 1)", raw<int32_t>({5, 6}), false, version));
    EXPECT_THAT(array.shape, ElementsAre(2, 1));
    EXPECT_THAT(array.integers(), ElementsAre(5, 6));
  }
  EXPECT_THAT(parse(npy_file("<i4", "()", raw<int32_t>({5}))).integers(), ElementsAre(5));
  EXPECT_THAT(parse(npy_file("<i4", "(0, 4611686018427387904)", "")).integers(), ElementsAre());
}

// Long integers as NumPy on Python 2 wrote them.
TEST(Npy, ReadsLongExtents) {
  const Array array = parse(npy_file("<i4", "(2L, 1L)", raw<int32_t>({5, 6})));
  EXPECT_THAT(array.shape, ElementsAre(2, 1));
  EXPECT_THAT(array.integers(), ElementsAre(5, 6));
  EXPECT_THAT(parse(npy_file("<i4", "(2L,)", raw<int32_t>({5, 6}))).integers(), ElementsAre(5, 6));
  for (const char* shape : {"(2LL,)", "(L,)", "(2L 1L)", "(2l,)"}) {
    EXPECT_NE(error(npy_file("<i4", shape, raw<int32_t>({5, 6}))), "nothing was thrown") << shape;
  }
}

TEST(Npy, TurnsFortranOrderIntoC) {
  // numpy.asfortranarray(numpy.arange(12).reshape(2, 3, 2)), as it lies in memory
  const std::string data = raw<int16_t>({0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11});
  EXPECT_THAT(parse(npy_file("<i2", "(2, 3, 2)", data, true)).integers(),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(parse(npy_file("<i2", "(3,)", raw<int16_t>({1, 2, 3}), true)).integers(),
              ElementsAre(1, 2, 3));
}

TEST(Npy, HasAsManyAxesAsNumPy) {
  std::string shape = "(2, ";
  for (int axis = 1; axis < 64; ++axis) shape += "1, ";
  EXPECT_EQ(parse(npy_file("|u1", shape + ")", "ab", true)).shape.size(), 64u);
  EXPECT_EQ(error(npy_file("|u1", shape + "1)", "ab", true)),
            "cannot read f: an array of more than 64 axes, which NumPy does not have either");
  EXPECT_EQ(error(npy_file("|u1", "(" + std::string(65536, ' ') + "1,)", "a", true, 2)),
            "cannot read f: a header of 65595 bytes, more than 65535");
}

TEST(Npy, RefusesOtherElements) {
  EXPECT_EQ(error(npy_file("|O", "(1,)", "(dp0\n.")),
            "cannot read f: its elements are pickled Python objects, which are never read");
  EXPECT_EQ(error(npy_file("[('a', '|O'), ('b', '<f8')]", "(1,)", "12345678")),
            "cannot read f: its elements are pickled Python objects, which are never read");
  EXPECT_EQ(error(npy_file(">f8", "(1,)", "12345678")),
            "cannot read f: elements of type \">f8\" are big-endian, which is not supported");
  for (const char* descr :
       {"<c8", "<f16", "<i3", "<M8[s]", "|V4", "|S0", "<U", "f8", "<f", "<f8x"}) {
    EXPECT_EQ(error(npy_file(descr, "(1,)", "12345678")),
              "cannot read f: elements of type \"" + std::string(descr) + "\" are not supported");
  }
  EXPECT_EQ(error(npy_file("[('a', '<i4'), ('b', '<i4')]", "(1,)", "12345678")),
            "cannot read f: elements of type \"[('a', '<i4'), ('b', '<i4')]\" are not supported");
}

TEST(Npy, NamesWhatIsDamaged) {
  EXPECT_EQ(error("PK"), "cannot read f: not an npy file");
  EXPECT_EQ(error(npy_file("<i4", "(1,)", "1234", false, 4)),
            "cannot read f: npy format 4 is not supported, only 1 to 3");
  EXPECT_EQ(error(npy_file("<i4", "(3,)", "12345678")),
            "cannot read f: truncated: shape [3] needs 12 bytes, there are 8");
  EXPECT_EQ(error(npy_file("<i4", "(1,)", "12345678")),
            "cannot read f: too long: shape [1] needs 4 bytes, there are 8");
  EXPECT_EQ(error(npy_file("<i4", "(3037000500, 3037000500)", "")),
            "cannot read f: shape [3037000500, 3037000500] is too large");
  EXPECT_EQ(error(npy_file("|b1", "(2,)", "\x01\x02")),
            "cannot read f: holds values that are not booleans");
  const std::string bad = "cannot read f: its header is not that of an npy file";
  for (const char* shape : {"(-1,)", "(1 2)", "(1,", "3", "(9223372036854775808,)", ""}) {
    EXPECT_EQ(error(npy_file("<i4", shape, "1234")), bad) << shape;
  }
  const std::string file = npy_file("<i4", "(1,)", "1234");
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(error(file.substr(0, size)), "nothing was thrown") << size;
  }
}

TEST(Npy, ConvertsOnlyWhatFits) {
  const auto integers = [](const std::string& file) {
    return input_error_of([&] { parse(file).integers(); });
  };
  EXPECT_EQ(integers(npy_file("<f8", "(2,)", raw<double>({1, 1.5}))),
            "cannot read f: expected integers, got 1.500000 at element 1");
  EXPECT_EQ(integers(npy_file("<f8", "(1,)", raw<double>({NAN}))),
            "cannot read f: expected integers, got nan at element 0");
  EXPECT_EQ(integers(npy_file("<u8", "(1,)", raw<uint64_t>({uint64_t{1} << 63}))),
            "cannot read f: expected integers of 64 bits with sign, got 9223372036854775808 at "
            "element 0");
  EXPECT_EQ(integers(npy_file("|S1", "(1,)", "1")),
            "cannot read f: expected integers, got strings");
  EXPECT_EQ(input_error_of([] { parse(npy_file("<i4", "(1,)", "1234")).strings(); }),
            "cannot read f: expected strings, got numbers");
  EXPECT_EQ(
      input_error_of([] { parse(npy_file("<U1", "(1,)", raw<uint32_t>({0xd800}))).strings(); }),
      "cannot read f: element 0 is not Unicode");
}

}  // namespace
}  // namespace nsimplex::io
