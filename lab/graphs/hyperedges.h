// Declares splits of hyperedges and the sampling of negative examples.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "io/tuples.h"
#include "support/random.h"

/// Prediction of hyperedges: decides which tuples of nodes belong to a hypergraph that is partly
/// known. Torch-free.
namespace nsimplex::data {

/// Tuples by their nodes. Tuples without types are sets: the order of their nodes does not matter.
class KnownTuples {
 public:
  explicit KnownTuples(bool typed) : typed_(typed) {}

  /// Returns whether the tuple was new.
  bool insert(std::span<const int64_t> tuple) { return tuples_.insert(key(tuple)).second; }
  bool contains(std::span<const int64_t> tuple) const { return tuples_.contains(key(tuple)); }
  int64_t size() const { return static_cast<int64_t>(tuples_.size()); }

 private:
  struct Hash {
    size_t operator()(const std::vector<int64_t>& tuple) const;
  };
  std::vector<int64_t> key(std::span<const int64_t> tuple) const;

  bool typed_;
  std::unordered_set<std::vector<int64_t>, Hash> tuples_;
};

/// Positive examples in three splits, over the same nodes.
struct HyperedgeSplits {
  io::Tuples train, validation, test;
  int64_t nodes = 0;
  bool typed = false;  ///< whether each column has its own nodes

  /// For each test row: whether it is neither in the training file nor earlier in the test file.
  std::vector<uint8_t> unseen;
  bool validates_by_test = false;  ///< the validation split is the test file, row by row

  std::span<const int64_t> row(const io::Tuples& of, int64_t number) const {
    return std::span(of.values).subspan(number * of.width, of.width);
  }
};

/// Splits training and test tuples as files give them. The seed draws `share` of the different
/// training tuples; with all their copies they become the validation split.
///
/// Throws InputError if the widths or the types of the two differ, a test tuple has a node that
/// training files do not number, an untyped tuple names a node twice, or a split is empty.
HyperedgeSplits split_hyperedges(const io::Tuples& train, const io::Tuples& test, double share,
                                 uint64_t seed);

/// Uses all training tuples for training and the test tuples for validation, so the chosen epoch is
/// the best one on the test file. Throws like split_hyperedges().
HyperedgeSplits splits_chosen_by_test(const io::Tuples& train, const io::Tuples& test);

/// Draws tuples that are not known and have the types of a known one.
class NegativeSampler {
 public:
  /// `known` is shared with others that only read it.
  NegativeSampler(const HyperedgeSplits& splits, std::shared_ptr<const KnownTuples> known);

  /// Draws a negative for a positive. With probability 0.9 one of its nodes, drawn first, is
  /// replaced by uniform ones of its type until the tuple is not known. Otherwise, or if that
  /// fails, all nodes are replaced. Throws InputError if nearly every tuple is known.
  std::vector<int64_t> draw(std::span<const int64_t> positive, RandomStream& draws) const;

 private:
  int64_t draw_node(int64_t column, RandomStream& draws) const;
  bool usable(std::span<const int64_t> tuple) const;

  bool typed_;
  std::vector<int64_t> first_, count_;  // the first node and the number of nodes per column type
  std::shared_ptr<const KnownTuples> known_;
};

/// Features of nodes from shared training tuples. For node i and the nodes j of the columns of its
/// type,
///
///     x_ij = number of tuples with both / the most that j shares with one node of the type,
///
/// which is between 0 and 1. Columns are the nodes that share a tuple with any node of the type.
/// Compressed rows for all nodes, types one after the other.
struct Cooccurrence {
  struct Type {
    int64_t first = 0, nodes = 0, columns = 0;  ///< its nodes from `first` on
  };
  std::vector<Type> types;
  std::vector<int64_t> offsets;  ///< [nodes + 1]
  std::vector<int64_t> columns;  ///< of its type, ascending in a row
  std::vector<float> values;
};
Cooccurrence cooccurrence(const HyperedgeSplits& splits);

}  // namespace nsimplex::data
