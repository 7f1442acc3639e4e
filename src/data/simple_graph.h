// Declares the reader of simple graphs from several formats.

#pragma once

#include <string>
#include <vector>

#include "io/graph_formats.h"
#include "io/text_grid.h"

namespace nsimplex::data {

struct SimpleGraphs {
  std::vector<io::SimpleGraph> graphs;
  io::TextReading reading;  ///< decisions made while reading a list of edges
};

/// Reads the simple graphs of a file, whose bytes determine the format: an npz of `python -m
/// nsimplex.molecules` (atoms and bonds), graph6 (lines, or strings of an npy), or a list of edges
/// (one graph; directions, repetitions and loops are dropped).
///
/// Throws InputError, with one line that names the file, for any other format.
SimpleGraphs read_simple_graphs(const std::string& path, const io::TextOptions& options = {});

}  // namespace nsimplex::data
