#include "io/safetensors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <random>

#include "support/error.h"
#include "temporary_folder.h"

namespace nsimplex::io {
namespace {

using test::read_file;
using test::TemporaryFolder;
using test::write_file;
using testing::HasSubstr;

// A file with the given header and data.
std::string assemble(const std::string& header, const std::string& data) {
  std::string file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<char>(header.size() >> (8 * i)));
  return file + header + data;
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& range) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + range + "}";
}

TEST(Safetensors, RoundTripOfEveryDtype) {
  const TemporaryFolder folder;
  Safetensors written;
  written.metadata = {{"format", "test"}, {"text", "line\n\"quoted\" \xc3\xa9"}};
  for (const auto type : {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong,
                          at::kHalf, at::kBFloat16, at::kFloat, at::kDouble}) {
    const at::Tensor values = at::arange(6, at::kLong).sub(at::isIntegralType(type, true) ? 0 : 3);
    written.tensors.push_back({c10::toString(type), values.to(type).view({2, 3})});
  }
  written.tensors.push_back({"scalar", at::tensor(3.5).squeeze()});
  written.tensors.push_back({"empty", at::empty({2, 0, 3})});
  written.tensors.push_back({"transposed", at::randn({3, 5}).t()});
  write_safetensors(folder / "a", written);

  const Safetensors read = read_safetensors(folder / "a");
  EXPECT_EQ(read.metadata, written.metadata);
  ASSERT_EQ(read.tensors.size(), written.tensors.size());
  for (const NamedTensor& each : written.tensors) {
    const at::Tensor* tensor = read.find(each.name);
    ASSERT_NE(tensor, nullptr) << each.name;
    EXPECT_EQ(tensor->scalar_type(), each.tensor.scalar_type()) << each.name;
    EXPECT_TRUE(at::equal(*tensor, each.tensor)) << each.name;
  }
  EXPECT_EQ(read.find("absent"), nullptr);
}

TEST(Safetensors, BytesDependOnTheContentsAlone) {
  const TemporaryFolder folder;
  const Safetensors contents{{{"a", at::zeros({3}, at::kByte)}, {"b", at::randn({4})}},
                             {{"k", "v"}}};
  write_safetensors(folder / "a", contents);
  write_safetensors(folder / "b", contents);
  EXPECT_EQ(read_file(folder / "a"), read_file(folder / "b"));
}

TEST(Safetensors, DataIsAligned) {
  const TemporaryFolder folder;
  write_safetensors(
      folder / "a",
      {{{"byte", at::zeros({3}, at::kByte)}, {"f64", at::zeros({5}, at::kDouble)}}, {}});
  const std::string file = read_file(folder / "a");
  const size_t header =
      static_cast<unsigned char>(file[0]) + 256u * static_cast<unsigned char>(file[1]);
  EXPECT_EQ((8 + header) % 64, 0u);
  const auto json = nlohmann::json::parse(file.substr(8, header));
  EXPECT_EQ(json["f64"]["data_offsets"], (std::vector<int>{0, 40}));
  EXPECT_EQ(json["byte"]["data_offsets"], (std::vector<int>{40, 43}));
}

TEST(Safetensors, ReadsMisalignedDataOfOtherWriters) {
  const TemporaryFolder folder;
  const float value = 1.5f;
  std::string data(1, '\7');
  data.append(reinterpret_cast<const char*>(&value), 4);
  const std::string header =
      R"({"b":)" + entry("U8", "[1]", "[0,1]") + R"(,"f":)" + entry("F32", "[]", "[1,5]") + "}";
  const Safetensors read = read_safetensors(write_file(folder / "a", assemble(header, data)));
  EXPECT_EQ(read.find("b")->item<uint8_t>(), 7);
  EXPECT_EQ(read.find("f")->item<float>(), 1.5f);
}

TEST(Safetensors, WritingIntoATensorLeavesTheFile) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {{{"x", at::zeros({4})}}, {}});
  read_safetensors(folder / "a").tensors[0].tensor.fill_(1);
  EXPECT_EQ(read_safetensors(folder / "a").tensors[0].tensor.sum().item<float>(), 0);
}

TEST(Safetensors, RefusesWhatTheFormatCannotHold) {
  const TemporaryFolder folder;
  const at::Tensor x = at::zeros({1});
  EXPECT_THROW(write_safetensors(folder / "a", {{{"x", x}, {"x", x}}, {}}), std::invalid_argument);
  EXPECT_THROW(write_safetensors(folder / "a", {{{"__metadata__", x}}, {}}), std::invalid_argument);
  EXPECT_THROW(write_safetensors(folder / "a", {{{"x", x.to(at::kComplexFloat)}}, {}}),
               std::invalid_argument);
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

struct BadFile {
  std::string contents;
  std::string reason;
};

TEST(Safetensors, SaysWhatIsWrongWithAFile) {
  const std::string four(4, '\0');
  const auto one = [](const std::string& value) { return R"({"x":)" + value + "}"; };
  const std::vector<BadFile> cases = {
      {"", "not a safetensors file (0 bytes)"},
      {"short", "not a safetensors file (5 bytes)"},
      {"a text file without a header", "not a safetensors file (header of"},
      {assemble("{}", "").substr(0, 9), "truncated: the header needs 2 bytes, the file has 1"},
      {assemble("{", ""), "the header is not JSON"},
      {assemble("{}garbage", ""), "the header is not JSON"},
      {assemble("{\"\xff\":1}", ""), "the header is not JSON"},
      {assemble("[]", ""), "the header is not a JSON object"},
      {assemble("{}", "x"), "1 bytes at the end belong to no tensor"},
      {assemble(R"({"__metadata__":[]})", ""), "__metadata__ is not an object"},
      {assemble(R"({"__metadata__":{"k":1}})", ""), "__metadata__.k is not a string"},
      {assemble(one("3"), ""), "tensor \"x\": is not described by an object"},
      {assemble(one("{}"), ""), "tensor \"x\": has no dtype"},
      {assemble(one(R"({"dtype":"F32"})"), ""), "tensor \"x\": has no shape"},
      {assemble(one(R"({"dtype":"F32","shape":[1]})"), four), "tensor \"x\": has no data_offsets"},
      {assemble(one(entry("F32", "[1]", "[0,-4]")), four), "tensor \"x\": has no data_offsets"},
      {assemble(one(entry("F32", "[1]", "[0,4.0]")), four), "tensor \"x\": has no data_offsets"},
      {assemble(one(entry("F8_E4M3", "[4]", "[0,4]")), four),
       "tensor \"x\": dtype \"F8_E4M3\" is not supported"},
      {assemble(one(entry("F32", "[-1]", "[0,4]")), four), "tensor \"x\": has a bad shape"},
      {assemble(one(entry("F32", "[true]", "[0,4]")), four), "tensor \"x\": has a bad shape"},
      {assemble(one(entry("F32", "[4611686018427387904]", "[0,4]")), four),
       "tensor \"x\": has a shape too large"},
      {assemble(one(entry("F32", "[9223372036854775807,0]", "[0,0]")), ""),
       "tensor \"x\": has a shape too large"},
      {assemble(one(entry("F32", "[1]", "[4,0]")), four),
       "tensor \"x\": its data end before they begin"},
      {assemble(one(entry("F32", "[2]", "[0,8]")), four),
       "tensor \"x\": truncated: its data end at byte 8 of 4"},
      {assemble(one(entry("F32", "[2]", "[0,4]")), four),
       "tensor \"x\": its shape needs 8 bytes, its data have 4"},
      {assemble(one(entry("BOOL", "[1]", "[0,1]")), "\2"),
       "tensor \"x\": holds values that are not booleans"},
      {assemble(R"({"x":)" + entry("U8", "[1]", "[0,1]") + R"(,"x":)" +
                    entry("U8", "[1]", "[1,2]") + "}",
                "ab"),
       "the header names a tensor twice"},
      {assemble(R"({"x":)" + entry("U8", "[2]", "[0,2]") + R"(,"y":)" +
                    entry("U8", "[2]", "[1,3]") + "}",
                "abc"),
       "tensor \"y\": its data overlap or leave a hole"},
      {assemble(R"({"x":)" + entry("U8", "[1]", "[0,1]") + R"(,"y":)" +
                    entry("U8", "[1]", "[2,3]") + "}",
                "abc"),
       "tensor \"y\": its data overlap or leave a hole"},
  };
  const TemporaryFolder folder;
  for (const BadFile& bad : cases) {
    const std::string path = write_file(folder / "bad.safetensors", bad.contents);
    try {
      read_safetensors(path);
      ADD_FAILURE() << "accepted a file with: " << bad.reason;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("cannot read " + path + ": " + bad.reason));
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

Safetensors small_file() {
  return {{{"a", at::arange(12, at::kFloat).view({3, 4})},
           {"b", at::arange(5, at::kLong)},
           {"c", at::zeros({3}, at::kBool)}},
          {{"step", "17"}}};
}

TEST(Safetensors, RefusesEveryTruncation) {
  const TemporaryFolder folder;
  write_safetensors(folder / "whole", small_file());
  const std::string whole = read_file(folder / "whole");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(read_safetensors(write_file(folder / "cut", whole.substr(0, size))), InputError)
        << size;
  }
}

// Whatever the bytes, reading ends in an InputError or in tensors all of whose elements can be
// read.
TEST(Safetensors, NeverFailsOtherwiseOnCorruptedFiles) {
  const TemporaryFolder folder;
  write_safetensors(folder / "whole", small_file());
  const std::string whole = read_file(folder / "whole");
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string bytes = whole;
    for (int change = random() % 4; change >= 0; --change) {
      // Digits, quotes and brackets reach further than arbitrary bytes do.
      static constexpr std::string_view kTelling = "0123456789-.eE\"{}[],:x\0\xff";
      bytes[random() % bytes.size()] = kTelling[random() % kTelling.size()];
    }
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    try {
      for (const NamedTensor& each : read_safetensors(write_file(folder / "bad", bytes)).tensors) {
        each.tensor.to(at::kDouble).sum();
      }
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

TEST(Safetensors, DeepNestingIsRefused) {
  const TemporaryFolder folder;
  const std::string deep = R"({"x":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_THROW(read_safetensors(write_file(folder / "deep", assemble(deep, ""))), InputError);
}

}  // namespace
}  // namespace nsimplex::io
