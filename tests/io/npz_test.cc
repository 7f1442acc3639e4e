#include "io/npz.h"

#include <gmock/gmock.h>

#include "input_error_of.h"
#include "io/samples.h"

namespace nsimplex::io {
namespace {

using test::input_error_of;
using testing::ElementsAre;
using testing::StartsWith;

std::string numbers() { return npy_file("<i4", "(2, 2)", raw<int32_t>({1, 2, 3, 4})); }
std::string pickled() { return npy_file("|O", "(1, 1)", "(dp0\n."); }

std::string sample(bool deflate) {
  return zip_file({{"folder/", ""}, {"a.npy", numbers()}, {"read.me", "x"}, {"o.npy", pickled()}},
                  deflate);
}

TEST(Npz, ReadsStoredAndDeflatedArrays) {
  for (const bool deflate : {false, true}) {
    const std::string file = sample(deflate);
    const Npz npz(source_of(file));
    EXPECT_THAT(npz.names(), ElementsAre("a", "o"));
    EXPECT_TRUE(npz.has("a"));
    EXPECT_FALSE(npz.has("read.me"));
    EXPECT_THAT(npz.read("a").integers(), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(npz.read_matrix().integers(), ElementsAre(1, 2, 3, 4));
  }
}

TEST(Npz, ReadsWhatDeflateShrinksALot) {
  const std::string file =
      zip_file({{"z.npy", npy_file("|u1", "(1000000,)", std::string(1000000, '\0'))}}, true);
  EXPECT_LT(file.size(), 2000u);
  EXPECT_EQ(Npz(source_of(file)).read("z").count(), 1000000);
}

TEST(Npz, NeverReadsPickles) {
  const std::string file = sample(true);
  EXPECT_EQ(
      input_error_of([&] { Npz(source_of(file)).read("o"); }),
      "cannot read f, array o: its elements are pickled Python objects, which are never read");
}

TEST(Npz, NamesWhatItLacks) {
  const std::string file = sample(false);
  EXPECT_EQ(input_error_of([&] { Npz(source_of(file)).read("b"); }),
            "cannot read f: expected an array \"b\", got a, o");
  const std::string two = zip_file({{"a.npy", numbers()}, {"b.npy", numbers()}}, false);
  EXPECT_EQ(input_error_of([&] { Npz(source_of(two)).read_matrix(); }),
            "cannot read f: expected one array of two dimensions, got 2 among a, b: name one");
  const std::string none = zip_file({}, false);
  EXPECT_EQ(input_error_of([&] { Npz(source_of(none)).read_matrix(); }),
            "cannot read f: expected one array of two dimensions, got 0 among none");
}

// The sizes and offset of the only entry of `file`, moved into a zip64 field.
std::string as_zip64(std::string file) {
  const size_t entry = file.rfind("PK\x01\x02"), end = file.rfind("PK\x05\x06");
  const std::string packed = file.substr(entry + 20, 4), size = file.substr(entry + 24, 4),
                    begin = file.substr(entry + 42, 4);
  const std::string zeros(4, '\0');
  const std::string extra =
      std::string("\x01\x00\x18\x00", 4) + size + zeros + packed + zeros + begin + zeros;
  for (const size_t field : {20, 24, 42}) file.replace(entry + field, 4, "\xff\xff\xff\xff");
  file[entry + 30] = static_cast<char>(extra.size());
  file[end + 12] = static_cast<char>(file[end + 12] + extra.size());
  file.insert(end, extra);
  return file;
}

TEST(Zip, ReadsZip64Fields) {
  const std::string file = as_zip64(zip_file({{"a.npy", numbers()}}, true));
  EXPECT_THAT(Npz(source_of(file)).read("a").integers(), ElementsAre(1, 2, 3, 4));
}

TEST(Zip, ReadsBehindAComment) {
  std::string file = zip_file({{"a", "text"}}, false);
  file[file.size() - 2] = 5;
  file += "hello";
  EXPECT_EQ(Zip(source_of(file)).entries().size(), 1u);
}

// Two entries of the directory with the data of the first.
TEST(Zip, RefusesEntriesThatOverlap) {
  std::string file = zip_file({{"a.npy", numbers()}, {"b.npy", numbers()}}, false);
  const size_t second = file.rfind("PK\x01\x02");
  file.replace(second + 42, 4, std::string(4, '\0'));
  EXPECT_EQ(input_error_of([&] { Npz(source_of(file)).read("a"); }),
            "cannot read f, b.npy: its data overlap those of another entry");
}

TEST(Zip, RefusesNamesThatComeTwice) {
  const std::string file = zip_file({{"a.npy", numbers()}, {"a.npy", numbers()}}, false);
  EXPECT_EQ(input_error_of([&] { Npz(source_of(file)).read("a"); }),
            "cannot read f: two entries are called \"a.npy\"");
}

// The data of the first array are damaged: nothing but headers is unpacked to find the matrix.
TEST(Npz, UnpacksOnlyWhatItTakes) {
  const std::string other = npy_file("|u1", "(4,)", "wxyz");
  std::string file = zip_file({{"a.npy", other}, {"b.npy", numbers()}}, false);
  file[file.find("wxyz")] = '!';
  const Npz npz(source_of(file));
  EXPECT_THAT(npz.read_matrix().integers(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(input_error_of([&] { npz.read("a"); }),
            "cannot read f, a.npy: its data are damaged: the checksum differs");
}

// The directory says gigabytes, which deflate could reach, and the header only a few bytes.
TEST(Npz, ComparesTheShapeWithTheSizeBeforeItUnpacks) {
  const std::string array = npy_file("|u1", "(1000000,)", std::string(2000000, '\0'));
  const std::string file = zip_file({{"a.npy", array}}, true);
  EXPECT_EQ(input_error_of([&] { Npz(source_of(file)).read("a"); }),
            "cannot read f, array a: too long: shape [1000000] needs 1000000 bytes, there are "
            "2000000");
}

TEST(Npz, NamesInMessagesArePrintableAndFew) {
  std::vector<std::pair<std::string, std::string>> files;
  files.emplace_back("\x1b]0;x\a.npy", numbers());
  for (int i = 0; i < 20; ++i) files.emplace_back(std::to_string(i) + ".npy", numbers());
  const std::string file = zip_file(files, false);
  EXPECT_EQ(
      input_error_of([&] { Npz(source_of(file)).read("no\n"); }),
      "cannot read f: expected an array \"no\\n\", got \\x1b]0;x\\x07, 0, 1, 2, 3, 4, 5, 6, 7, 8 "
      "and 11 more");
}

TEST(Zip, NamesWhatIsDamaged) {
  const auto error = [](const std::string& file) {
    return input_error_of([&] {
      const Zip zip(source_of(file));
      for (const ZipEntry& entry : zip.entries()) zip.contents(entry);
    });
  };
  for (const bool deflate : {false, true}) {
    const std::string good = zip_file({{"a", "a text that is long enough"}}, deflate);
    EXPECT_EQ(error(good), "nothing was thrown");
    for (size_t size = 0; size < good.size(); ++size) {
      EXPECT_EQ(error(good.substr(0, size)),
                "cannot read f: not a zip archive, or truncated: it has no directory");
    }
    const size_t entry = good.rfind("PK\x01\x02");
    const auto changed = [&](size_t at, char value) {
      std::string file = good;
      file[at] = value;
      return error(file);
    };
    EXPECT_EQ(changed(entry + 8, 1), "cannot read f, a: is encrypted");
    EXPECT_EQ(changed(entry + 10, 14),
              "cannot read f, a: compression method 14 is not supported, only stored and deflated");
    EXPECT_EQ(changed(entry + 16, good[entry + 16] + 1),
              "cannot read f, a: its data are damaged: the checksum differs");
    EXPECT_THAT(changed(entry + 24, 25), StartsWith("cannot read f, a: "));
    EXPECT_EQ(changed(entry + 27, 127), "cannot read f, a: the sizes in its directory cannot be");
    EXPECT_THAT(changed(entry + 21, 100), StartsWith("cannot read f, a: truncated"));
    EXPECT_EQ(changed(0, 'Q'), "cannot read f, a: its header is damaged");
    EXPECT_EQ(changed(entry, 'Q'), "cannot read f: its directory is damaged");
  }
}

}  // namespace
}  // namespace nsimplex::io
