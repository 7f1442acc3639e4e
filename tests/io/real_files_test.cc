// Files that others wrote, from the folder that NSIMPLEX_DATA names; skipped where they are absent.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "io/edge_list.h"
#include "io/graph_formats.h"
#include "io/table.h"
#include "io/tuples.h"

namespace nsimplex::io {
namespace {

class RealFiles : public testing::Test {
 protected:
  // The file below the folder; the test is skipped where it is not there.
  std::string file(const std::string& name) {
    const char* folder = std::getenv("NSIMPLEX_DATA");
    if (folder == nullptr) return "";
    const auto path = std::filesystem::path(folder) / name;
    return std::filesystem::exists(path) ? path.string() : "";
  }
};

#define NSIMPLEX_REAL_FILE(path, name) \
  const std::string path = file(name); \
  if (path.empty()) GTEST_SKIP() << "no " << name << " below NSIMPLEX_DATA"

TEST_F(RealFiles, HyperedgesWithTypes) {
  NSIMPLEX_REAL_FILE(gps, "hyperedges/gps_train.npz");
  const Tuples tuples = read_tuples(gps, {.width = 3});
  EXPECT_EQ(tuples.count(), 1154);
  EXPECT_EQ(tuples.type_sizes, (std::vector<int64_t>{146, 70, 5}));
}

TEST_F(RealFiles, HyperedgesInFloatsBesidePickles) {
  NSIMPLEX_REAL_FILE(movielens, "hyperedges/movielens_train.npz");
  const Tuples tuples = read_tuples(movielens);
  EXPECT_EQ(tuples.count(), 38365);
  EXPECT_EQ(tuples.nodes(), 1943 + 5610 + 8040);
}

TEST_F(RealFiles, StronglyRegularGraphs) {
  NSIMPLEX_REAL_FILE(family, "graphs/sr/sr261034.g6");
  const auto graphs = read_graphs(family);
  EXPECT_EQ(graphs.size(), 10u);
  for (const SimpleGraph& graph : graphs) {
    EXPECT_EQ(graph.nodes, 26);
    EXPECT_EQ(graph.edges.size(), 2u * 26 * 10 / 2);
  }
}

TEST_F(RealFiles, PairsOfGraphsInArrays) {
  NSIMPLEX_REAL_FILE(strongly_regular, "graphs/brec/str.npy");
  const auto graphs = read_graphs(strongly_regular);
  ASSERT_EQ(graphs.size(), 100u);
  for (size_t i = 0; i < graphs.size(); i += 2) {
    EXPECT_EQ(graphs[i].nodes, graphs[i + 1].nodes);
    EXPECT_EQ(graphs[i].edges.size(), graphs[i + 1].edges.size());
  }
}

TEST_F(RealFiles, GraphsInWideCharacters) {
  NSIMPLEX_REAL_FILE(basic, "graphs/brec/basic.npy");
  const auto graphs = read_graphs(basic);
  EXPECT_EQ(graphs.size(), 120u);
  for (const SimpleGraph& graph : graphs) EXPECT_EQ(graph.nodes, 10);
}

TEST_F(RealFiles, Tables) {
  NSIMPLEX_REAL_FILE(sachs, "causal/sachs.csv");
  const Table table = read_table(sachs, {.allow_missing = false});
  EXPECT_EQ(table.rows, 853);
  EXPECT_EQ(table.columns.size(), 11u);
  EXPECT_EQ(table.columns[0], "Raf");
  EXPECT_EQ(table.at(0, 0), 26.4);
}

TEST_F(RealFiles, QuotedTablesBehindABlankLine) {
  NSIMPLEX_REAL_FILE(expression, "causal/dream4/expression_1.tsv");
  const Table table = read_table(expression);
  EXPECT_EQ(table.rows, 100);
  EXPECT_EQ(table.columns.back(), "G100");
}

TEST_F(RealFiles, TablesInFoldersOfAnArchive) {
  NSIMPLEX_REAL_FILE(archive, "causal/syntren_p20.zip");
  const Table table = read_table(archive, {.key = "syntren/data3"});
  EXPECT_EQ(table.rows, 500);
  EXPECT_EQ(table.width, 20);
}

TEST_F(RealFiles, TablesWithLabels) {
  NSIMPLEX_REAL_FILE(cells, "cells/SCoPE2_Leduc_data.csv");
  const Table table = read_table(cells);
  EXPECT_EQ(table.labels[0], "i10");
  EXPECT_EQ(table.labels.size(), static_cast<size_t>(table.rows));
  EXPECT_EQ(table.columns[0], "A0A024RBG1");
}

TEST_F(RealFiles, EdgesBetweenNames) {
  NSIMPLEX_REAL_FILE(gold, "causal/dream4/gold_1.csv");
  const EdgeList list = read_edge_list(gold);
  EXPECT_EQ(list.nodes, 100);
  EXPECT_EQ(list.weights.size(), 9900u);
  NSIMPLEX_REAL_FILE(mammals, "hierarchy/mammal_closure.tsv");
  EXPECT_EQ(read_edge_list(mammals).nodes, 1180);
}

}  // namespace
}  // namespace nsimplex::io
