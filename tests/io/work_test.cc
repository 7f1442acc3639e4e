// Readers take time and memory in proportion to the bytes of a file. What they do is counted for a
// file and for one four times as long.

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <ostream>
#include <string>

#include "io/edge_list.h"
#include "io/graph_formats.h"
#include "io/npz.h"
#include "io/safetensors_header.h"
#include "io/samples.h"
#include "io/table.h"
#include "io/tuples.h"
#include "io/work.h"
#include "support/error.h"

namespace nsimplex::io {
namespace {

std::string repeated(const std::string& text, int64_t times) {
  std::string all;
  for (int64_t i = 0; i < times; ++i) all += text;
  return all;
}

std::string numbered(const std::string& before, int64_t times, const std::string& after) {
  std::string all;
  for (int64_t i = 0; i < times; ++i) all += before + std::to_string(i) + after;
  return all;
}

std::string safetensors_of(const std::string& header) {
  const auto size = static_cast<int64_t>(header.size());
  return raw<int64_t>({size}) + header;
}

std::string tensors(int64_t count, const std::string& fields) {
  std::string header = "{";
  for (int64_t i = 0; i < count; ++i) {
    header += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":{" + fields + "}";
  }
  return safetensors_of(header + "}");
}

void table(const Source& source) { parse_table(source); }
void tuples(const Source& source) { parse_tuples(source); }
void graphs(const Source& source) { parse_graphs(source); }
void edges(const Source& source) { parse_edge_list(source); }
void safetensors(const Source& source) { parse_safetensors_header(source); }

// A reader and files of about n cells, lines, entries or whatever they repeat.
struct Growing {
  const char* name;
  void (*read)(const Source&);
  std::function<std::string(int64_t)> file;
};

void PrintTo(const Growing& growing, std::ostream* stream) { *stream << growing.name; }

class ReaderWork : public testing::TestWithParam<Growing> {};

TEST_P(ReaderWork, GrowsWithTheBytes) {
  const auto work = [&](int64_t count, size_t& size) {
    const std::string file = GetParam().file(count);
    size = file.size();
    return work_of([&] {
      try {
        GetParam().read(source_of(file));
      } catch (const InputError&) {  // damaged files take no longer
      }
    });
  };
  size_t size = 0, larger = 0;
  work(10, size);  // what is done once only
  const Work one = work(1000, size), four = work(4000, larger);
  const double growth = static_cast<double>(larger) / static_cast<double>(size);
  EXPECT_GT(one.steps, 100) << "the readers are not compiled to be counted";
  EXPECT_LT(static_cast<double>(four.steps), 1.3 * growth * static_cast<double>(one.steps));
  // The factor that input_file.h states, beside what does not grow: a window of zlib and the like.
  EXPECT_LT(four.memory, kMostMemory * static_cast<int64_t>(larger) + (1 << 17));
}

INSTANTIATE_TEST_SUITE_P(
    All, ReaderWork,
    testing::Values(
        Growing{"OneColumn", table, [](int64_t n) { return "v\n" + repeated("123456789\n", n); }},
        Growing{"OneLine", table, [](int64_t n) { return repeated("1,", n) + "1\n"; }},
        Growing{"OneLongCell", table, [](int64_t n) { return repeated("abcdefgh", n); }},
        Growing{"TwoColumns", table, [](int64_t n) { return repeated("1.5,2\n", n); }},
        Growing{"Commas", table, [](int64_t n) { return repeated(",", n); }},
        Growing{"EmptyLines", table, [](int64_t n) { return repeated("\n", n) + "1\n"; }},
        Growing{"Blanks", table, [](int64_t n) { return repeated(" ", n) + "1 2\n3 4\n"; }},
        Growing{"Quotes", table, [](int64_t n) { return repeated("\"a\"\"b\",\"1\"\n", n); }},
        Growing{"OneQuote", table, [](int64_t n) { return "\"" + repeated("a\n", n); }},
        Growing{"Comments", table, [](int64_t n) { return repeated("# a\n", n) + "1,2\n"; }},
        Growing{"RowNames", table, [](int64_t n) { return "a,b\n" + numbered("r", n, ",1\n"); }},
        Growing{
            "ColumnNames", table,
            [](int64_t n) { return numbered("c", n, ",") + "x\n" + repeated("1,", n) + "1\n"; }},
        Growing{"Utf16", table,
                [](int64_t n) { return "\xff\xfe" + repeated(std::string("1\0\n\0", 4), n); }},
        Growing{"Tuples", tuples, [](int64_t n) { return numbered("0,", n, "\n"); }},
        Growing{"Edges", edges, [](int64_t n) { return numbered("a b", n, "\n"); }},
        Growing{"FarNodes", edges, [](int64_t n) { return numbered("0 10000000", n, "\n"); }},
        Growing{"GraphML", edges,
                [](int64_t n) {
                  return "<graphml>" + numbered("<node id=\"", n, "\"/>") +
                         repeated("<edge source=\"0\" target=\"1\"/>&amp;", n) + "</graphml>";
                }},
        Growing{"GraphMLComments", edges,
                [](int64_t n) { return "<graphml>" + repeated("<!--a--><![CDATA[b]]>", n); }},
        Growing{"GraphMLAttributes", edges,
                [](int64_t n) { return "<graphml " + numbered("a", n, "=\"\" ") + "/>"; }},
        Growing{"GraphMLOpenTags", edges,
                [](int64_t n) { return "<graphml>" + repeated("<a", n); }},
        Growing{"Graphs", graphs, [](int64_t n) { return repeated("DQc\n", n); }},
        Growing{"GraphStrings", graphs,
                [](int64_t n) {
                  return npy_file("|S3", "(" + std::to_string(n) + ",)", repeated("DQc", n));
                }},
        Growing{"Npy", table,
                [](int64_t n) {
                  return npy_file("|u1", "(" + std::to_string(n) + ", 2)",
                                  std::string(static_cast<size_t>(2 * n), '\1'), true);
                }},
        Growing{"NpyAxes", table,
                [](int64_t n) {
                  return npy_file("|u1", "(" + repeated("1, ", n) + ")", "\1", true, 2);
                }},
        Growing{"NpzEntries", table,
                [](int64_t n) {
                  std::vector<std::pair<std::string, std::string>> files;
                  const std::string array = npy_file("|u1", "(1,)", "\1");
                  for (int64_t i = 0; i < n; ++i) {
                    files.emplace_back(std::to_string(i) + ".npy", array);
                  }
                  return zip_file(files, false);
                }},
        Growing{"Tensors", safetensors,
                [](int64_t n) {
                  return tensors(n, R"("dtype":"U8","shape":[0],"data_offsets":[0,0])");
                }},
        Growing{
            "TensorFields", safetensors,
            [](int64_t n) { return safetensors_of("{\"x\":{" + numbered("\"a", n, "\":[],")); }},
        Growing{"TensorMetadata", safetensors,
                [](int64_t n) {
                  return safetensors_of("{\"__metadata__\":{" + numbered("\"a", n, "\":\"\",") +
                                        "\"z\":\"\"}}");
                }},
        Growing{"TensorNesting", safetensors,
                [](int64_t n) { return safetensors_of("{\"x\":{\"y\":" + repeated("[", n)); }}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace nsimplex::io
