#pragma once

#include <string>
#include <vector>

#include "io/graph_formats.h"
#include "io/text_grid.h"

namespace nsimplex::data {

struct SimpleGraphs {
  std::vector<io::SimpleGraph> graphs;
  io::TextReading reading;  ///< what was decided to read a list of edges
};

/// The simple graphs of a file, whose format its bytes say: an npz of `python -m
/// nsimplex.molecules` (atoms and bonds), graph6 (lines, or strings of an npy), or a list of edges
/// (one graph; directions, repetitions and loops are dropped).
///
/// Throws InputError, of one line with the file, for what is none of these.
SimpleGraphs read_simple_graphs(const std::string& path, const io::TextOptions& options = {});

}  // namespace nsimplex::data
