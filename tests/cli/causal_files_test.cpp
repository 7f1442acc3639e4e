// Files as other programs write them, and as people get them wrong, given to the commands that read
// tables: the right answer, or one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "cli/json_of.h"
#include "cli/process.h"
#include "io/npy.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRows = 40;

// x1 follows x0, x2 follows x1.
std::array<double, 3> row_of(int row) {
  const double a = std::sin(1.0 + 7.0 * row), b = 2 * a + 0.3 * std::sin(2.0 + 5.0 * row);
  return {a, b, b + 0.3 * std::sin(3.0 + 11.0 * row)};
}

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.5f", value);
  return text;
}

// Rows between `separator`, each beginning with row_name(row) and ending with `end`.
template <class RowName>
std::string rows(const std::string& separator, const std::string& end, RowName&& row_name) {
  std::string text;
  for (int row = 0; row < kRows; ++row) {
    const auto values = row_of(row);
    text += row_name(row) + text_of(values[0]) + separator + text_of(values[1]) + separator +
            text_of(values[2]) + end;
  }
  return text;
}

std::string plain_rows(const std::string& separator, const std::string& end = "\n") {
  return rows(separator, end, [](int) { return std::string(); });
}

class CausalFiles : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    return test::write_file(folder_ / name, text);
  }

  // Small, so that a training takes a moment.
  static Finished study(const std::string& name, const std::string& table,
                        const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "causal",    "task", name,       table, "--encodings",      "none",
        "--seeds",   "1",    "--epochs", "1",   "--restore-epochs", "1",
        "--width",   "8",    "--heads",  "2",   "--layers",         "1",
        "--threads", "1",    "--json"};
    if (name != "cluster") arguments.insert(arguments.end(), {"--splits", "1"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  static Finished fit(const std::string& table, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"causal", "fit", table, "--json", "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  test::TemporaryFolder folder_;
};

// Lines on standard error, without warnings of what the table does not tell.
int64_t said_of(const Finished& done) {
  return std::ranges::count_if(lines_of(done.err), [](const std::string& line) {
    return line.find(" warning: ") == std::string::npos;
  });
}

TEST_F(CausalFiles, StudiesReadTablesWithoutNames) {
  std::string labels = "label\n";
  std::vector<double> values;
  for (int row = 0; row < kRows; ++row) {
    labels += row % 2 == 0 ? "a\n" : "b\n";
    for (const double value : row_of(row)) values.push_back(value);
  }
  const std::string known = file("labels.csv", labels);
  const std::vector<int64_t> shape{kRows, 3};
  const std::vector<std::string> tables{file("t.npy", io::npy_bytes(values, shape)),
                                        file("t.csv", plain_rows(",")),
                                        file("t.tsv", plain_rows("\t"))};
  for (const std::string& table : tables) {
    for (const char* name : {"classify", "cluster", "regress"}) {
      const bool regress = std::string(name) == "regress";
      const Finished done =
          study(name, table,
                regress ? std::vector<std::string>{} : std::vector{std::string("--labels"), known});
      EXPECT_EQ(done.code, 0) << name << " " << table << ": " << done.err;
    }
  }
}

TEST_F(CausalFiles, FitReadsWhatOtherProgramsWrite) {
  const auto numbers = [](int row) { return std::to_string(row) + ","; };
  const auto quoted = [](int row) { return "\"" + std::to_string(row + 1) + "\" "; };
  const std::vector<std::pair<std::string, std::string>> texts{
      {"named", "a,b,c\n" + plain_rows(",")},
      {"pandas", ",0,1,2\n" + rows(",", "\n", numbers)},
      {"pandas without index", "0,1,2\n" + plain_rows(",")},
      {"years", "2018,2020,2030\n" + plain_rows(",")},
      {"R", "\"a\" \"b\" \"c\"\n" + rows(" ", "\n", quoted)},
      {"savetxt", "# a b c\n" + plain_rows(" ")},
      {"trailing", "a,b,c\n" + plain_rows(",", ",\n")},
      {"Excel",
       "\xef\xbb\xbf"
       "a;b;c\r\n" +
           plain_rows(";", "\r\n")},
      {"old Mac", "a,b,c\r" + plain_rows(",", "\r")}};
  for (const auto& [name, text] : texts) {
    const Finished done = fit(file("t", text));
    ASSERT_EQ(done.code, 0) << name << ": " << done.err;
    const json line = json_of(done.out).at(0);
    EXPECT_EQ(line["observations"], kRows) << name;
    EXPECT_EQ(line["features"], 3) << name;
    EXPECT_EQ(line["read"]["table"]["header"], true) << name;
    EXPECT_EQ(said_of(done), 1) << done.err;
    EXPECT_THAT(done.err, AllOf(HasSubstr("read 40 rows of 3 columns; "), HasSubstr("names")));
  }
  const Finished data = fit(file("t", plain_rows(",")));
  EXPECT_THAT(data.err, HasSubstr("first row taken as data (--header yes to take it as names)"));
  EXPECT_EQ(json_of(data.out).at(0)["read"]["table"]["header"], false);
  EXPECT_EQ(json_of(fit(file("t", "a,b,c\n" + plain_rows(",")), {"--use-columns", "a,c"}).out)
                .at(0)["features"],
            2);
}

TEST_F(CausalFiles, OneLineForWhatCannotBeRead) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"inf,2\n3,4\n5,6\n", "line 1, column x0: expected a number, got \"inf\""},
      {"1e400,2\n3,4\n5,6\n", "got \"1e400\", which is too large"},
      {"a,b\n1,2\n3,x\n", "line 3, column b: expected a number, got \"x\""},
      {"temp\xe9,b\n1,2\n3,4\n", "line 1: not UTF-8: byte 0xe9"},
      {"\x89HDF\r\n\x1a\n", "python -m nsimplex.causal.cells"},
      {"a,b\n1,2\n3,4,5\n", "line 3: expected 2 cells as in line 2, got 3"}};
  for (const auto& [text, says] : cases) {
    const std::string path = file("t", text);
    for (const Finished& done : {fit(path), study("regress", path, {})}) {
      EXPECT_EQ(done.code, 2) << text;
      EXPECT_EQ(said_of(done), 1) << done.err;
      EXPECT_THAT(done.err, HasSubstr(says));
    }
  }
  // The same column is called the same by every check.
  EXPECT_THAT(fit(file("t", "1,2\n3,x\n")).err, HasSubstr("line 2, column x1: expected a number"));
  EXPECT_THAT(fit(file("t", "1,2\n3,\n4,5\n")).err, HasSubstr("row 2, column x1"));
  const Finished tiny = fit(file("t", "a,b\n1,2\n1e-400,3\n5,7\n2,2\n"));
  EXPECT_EQ(tiny.code, 0) << tiny.err;
}

TEST_F(CausalFiles, GraphsMeetTheirTablesWhateverColumnsAreCalled) {
  const std::string odd = "\"q\"\"t\",\"IL-2, active\",\"a:b\"\n";
  for (const std::string& names :
       {std::string("a,b,c\n"), odd, std::string("1,x,7\n"), std::string("2018,2019,2020\n"),
        std::string("source,target,weight\n")}) {
    const std::string table = file("t.csv", names + plain_rows(","));
    const std::string out = folder_ / ("g" + std::to_string(names.size()) + names.substr(0, 1));
    ASSERT_EQ(fit(table, {"--out", out}).code, 0);
    for (const char* graph : {"/graph.csv", "/graph.tsv"}) {
      const Finished done = fit(table, {"--truth", out + graph});
      ASSERT_EQ(done.code, 0) << names << done.err;
      EXPECT_EQ(json_of(done.out).at(0)["shd"], 0) << names << graph;
      EXPECT_EQ(json_of(done.out).at(0)["true_edges"], 2) << names << graph;
    }
  }
  const std::string table = file("t.csv", odd + plain_rows(","));
  const Finished forbidden = fit(table, {"--forbid", "IL-2, active:a:b", "--require",
                                         "\"a:b\":\"q\"\"t\",\"a:b\":\"IL-2, active\""});
  EXPECT_EQ(forbidden.code, 0) << forbidden.err;
  const std::string colons = file("t.csv", "a,a:b,b:c\n" + plain_rows(","));
  EXPECT_EQ(fit(colons, {"--forbid", "a:b:c"}).code, 0);
  const std::string more = file("t.csv", "a,a:b,b:c,c\n1,2,3,4\n2,1,5,5\n4,4,4,1\n");
  EXPECT_THAT(fit(more, {"--forbid", "a:b:c"}).err, HasSubstr("can be read as two edges"));
  EXPECT_EQ(fit(more, {"--forbid", "\"a:b\":c"}).code, 0);
}

TEST_F(CausalFiles, TargetsAndLabelsBelongToRows) {
  const auto name = [](int row) { return "r" + std::to_string(row); };
  const std::string table =
      file("t.csv", ",a,b,c\n" + rows(",", "\n", [&](int row) { return name(row) + ","; }));
  std::string straight = "y\n", named = ",y\n", turned = named;
  for (int row = 0; row < kRows; ++row) {
    const std::string value = text_of(row_of(row)[2]);
    straight += value + "\n";
    named += name(row) + "," + value + "\n";
    turned += name(kRows - 1 - row) + "," + text_of(row_of(kRows - 1 - row)[2]) + "\n";
  }
  const auto medae = [&](const std::string& target) {
    const Finished done = study("regress", table, {"--target", file("y.csv", target)});
    EXPECT_EQ(done.code, 0) << done.err;
    return done.code == 0 ? json_of(done.out).at(0)["medae"] : json();
  };
  EXPECT_EQ(medae(straight), medae(named));
  EXPECT_EQ(medae(named), medae(turned));
  EXPECT_EQ(medae(straight.substr(2)), medae(named));  // without a header
  EXPECT_EQ(medae("2019\n" + straight.substr(2)), medae(named));
  const auto error = [&](const std::string& target) {
    const Finished done = study("regress", table, {"--target", file("y.csv", target)});
    EXPECT_EQ(done.code, 2);
    EXPECT_EQ(said_of(done), 1) << done.err;
    return done.err;
  };
  EXPECT_THAT(error(straight + "1\n2\n"),
              HasSubstr("expected 40 numbers, one per row of the table, got 42"));
  EXPECT_THAT(error("y\n1\n2\n"), HasSubstr("got 2"));
  EXPECT_THAT(error(",y\nr0,1\nr1,2\n"), HasSubstr("no number of row \"r2\""));
  EXPECT_THAT(error("y\nx\n" + straight.substr(straight.find('\n', 2) + 1)),
              HasSubstr("line 2: expected a number, got \"x\""));
  const Finished gap =
      study("classify", table, {"--labels", file("l.csv", "kind\na\n\"\"\n" + straight.substr(2))});
  EXPECT_THAT(gap.err, HasSubstr("line 3: expected a label, got nothing"));
}

TEST_F(CausalFiles, EmbedReadsItsOwnEdgesAndHugeNumbers) {
  const std::string graph = file("g.tsv", "source\ttarget\tweight\na\tb\t1\nb\tc\t0.5\n");
  const auto embed = [&](const std::string& path, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all{"causal", "embed",  path,        "--steps",
                                 "2",      "--json", "--threads", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  };
  ASSERT_EQ(embed(graph, {"--out", folder_ / "ball"}).code, 0);
  const Finished again = embed(folder_ / "ball/edges.tsv");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(json_of(again.out).at(0)["nodes"], 3);
  EXPECT_EQ(json_of(again.out).at(0)["edges"], 2);
  const Finished huge = embed(file("h.txt", "45670945678 12345678901\n12345678901 45670945679\n"));
  ASSERT_EQ(huge.code, 0) << huge.err;
  EXPECT_EQ(json_of(huge.out).at(0)["nodes"], 3);
  EXPECT_THAT(huge.err, HasSubstr("taken as names of 3 nodes"));
}

}  // namespace
}  // namespace nsimplex::cli::testing
