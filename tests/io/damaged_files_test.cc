// Whatever a file holds, a reader returns or says in one line what is wrong. Valid files are
// damaged at random; the sanitizers watch.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <functional>

#include "io/edge_list.h"
#include "io/graph_formats.h"
#include "io/samples.h"
#include "io/table.h"
#include "io/tuples.h"
#include "support/error.h"

namespace nsimplex::io {
namespace {

std::vector<std::string> samples() {
  const std::string matrix = npy_file("<f8", "(2, 2)", raw<double>({0, 1, 2, 3}), true);
  const std::string sizes = npy_file("<i8", "(2,)", raw<int64_t>({3, 4}));
  return {
      matrix,
      npy_file("<U2", "(2,)", raw<uint32_t>({'A', '_', 'A', '?'}), false, 2),
      zip_file({{"train_data.npy", matrix}, {"nums_type.npy", sizes}}, true),
      zip_file({{"a.npy", matrix}, {"b.npy", sizes}}, false),
      "a,b\n1,2\n\"3\",\"4\"\"\"\n",
      ">>graph6<<DQc\n~?A?????\n",
      "source target\nx y 1\n# z\ny z 0.5\n",
      "<graphml><graph><node id=\"a\"/><edge source=\"a\" target=\"a\"/>&amp;</graph></graphml>",
      "sep=;\n# a b\n\"a\";b;\n1;NA;\n"};
}

// A byte changed, cut out or put in; bytes that mean something in one of the formats come often.
void damage(std::string& file) {
  const auto byte = *rc::gen::oneOf(rc::gen::arbitrary<char>(),
                                    rc::gen::element('\0', '\xff', '"', '\n', ',', '~', '9', '-'));
  const auto at = *rc::gen::inRange<size_t>(0, file.size() + 1);
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      file.insert(at, 1, byte);
      break;
    case 1:
      file.erase(at, *rc::gen::inRange<size_t>(0, 4));
      break;
    case 2:
      file.resize(at);
      break;
    default:
      if (at < file.size()) file[at] = byte;
  }
}

TEST(DamagedFiles, AreReadOrRefused) {
  const std::vector<std::function<void(const Source&)>> readers = {
      [](const Source& source) { parse_table(source); },
      [](const Source& source) { parse_tuples(source); },
      [](const Source& source) { parse_graphs(source); },
      [](const Source& source) { parse_edge_list(source); }};
  rc::check([&] {
    std::string file = *rc::gen::elementOf(samples());
    const int times = *rc::gen::inRange(0, 4);
    for (int i = 0; i < times; ++i) damage(file);
    for (const auto& read : readers) {
      try {
        read(source_of(file));
      } catch (const InputError& error) {
        const std::string_view message = error.what();
        RC_ASSERT(message.starts_with("cannot read f"));
        RC_ASSERT(message.find('\n') == std::string_view::npos);
      }
    }
  });
}

TEST(DamagedFiles, EverySingleByteMayBeWrong) {
  for (const std::string& file : samples()) {
    for (size_t at = 0; at < file.size(); ++at) {
      for (const char byte : {'\0', '\x01', '\x7f', '\xff', '9', ')'}) {
        std::string damaged = file;
        damaged[at] = byte;
        try {
          parse_tuples(source_of(damaged));
        } catch (const InputError&) {
        }
      }
    }
  }
}

}  // namespace
}  // namespace nsimplex::io
