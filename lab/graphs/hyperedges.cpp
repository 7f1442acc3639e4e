// Splits hyperedges into training, validation and test sets, and draws negative examples.

#include "lab/graphs/hyperedges.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "support/error.h"

namespace nsimplex::data {
namespace {

// share of the negatives that differ from their positive in one node
constexpr double kOneNode = 0.9;
constexpr int kMostAttempts = 1000;  // attempts per negative

bool has_repeated(std::vector<int64_t> tuple) {
  std::sort(tuple.begin(), tuple.end());
  return std::adjacent_find(tuple.begin(), tuple.end()) != tuple.end();
}

void check_files(const io::Tuples& train, const io::Tuples& test) {
  const auto fail = [](const std::string& why) { throw InputError("[hyperedges] " + why); };
  if (train.width != test.width) {
    fail("test: expected tuples of " + std::to_string(train.width) + " nodes as in train, got " +
         std::to_string(test.width));
  }
  if (train.type_sizes != test.type_sizes) {
    fail("test: expected the nums_type of train: types and their numbers of nodes differ");
  }
  if (train.count() == 0 || test.count() == 0) fail("train, test: expected a tuple in each");
  // Each node has an embedding, in a tuple or not. A file with one line must not ask for gigabytes.
  constexpr int64_t kFewNodes = 1'000'000, kMostUnused = 16;
  if (train.nodes() / kMostUnused > std::max(kFewNodes, std::ssize(train.values))) {
    fail("train: expected nodes that are numbered from 0 on, got " + std::to_string(train.nodes()) +
         " of them for " + std::to_string(train.count()) + " tuples");
  }
  if (test.nodes() > train.nodes()) {
    fail("test: expected nodes 0 to " + std::to_string(train.nodes() - 1) + " as in train, got " +
         std::to_string(test.nodes() - 1));
  }
  if (!train.type_sizes.empty()) return;
  for (const io::Tuples* of : {&train, &test}) {
    for (int64_t row = 0; row < of->count(); ++row) {
      const auto begin = of->values.begin() + row * of->width;
      if (has_repeated({begin, begin + of->width})) {
        fail(std::string(of == &train ? "train" : "test") + ": row " + std::to_string(row) +
             ": expected different nodes in a tuple");
      }
    }
  }
}

struct Unsplit {
  HyperedgeSplits splits;       // all training tuples for training, no validation tuples yet
  std::vector<int64_t> firsts;  // the first training row of each different tuple
};

Unsplit unsplit(const io::Tuples& train, const io::Tuples& test) {
  check_files(train, test);
  Unsplit result{.splits = {.train = train, .test = test}};
  HyperedgeSplits& splits = result.splits;
  splits.nodes = train.nodes();
  splits.typed = !train.type_sizes.empty();
  KnownTuples seen(splits.typed);
  for (int64_t row = 0; row < train.count(); ++row) {
    if (seen.insert(splits.row(train, row))) result.firsts.push_back(row);
  }
  for (int64_t row = 0; row < test.count(); ++row) {
    splits.unseen.push_back(seen.insert(splits.row(test, row)));
  }
  return result;
}

}  // namespace

size_t KnownTuples::Hash::operator()(const std::vector<int64_t>& tuple) const {
  uint64_t hash = 0;
  for (const int64_t node : tuple) hash = random_bits(hash, static_cast<uint64_t>(node));
  return hash;
}

std::vector<int64_t> KnownTuples::key(std::span<const int64_t> tuple) const {
  std::vector<int64_t> key(tuple.begin(), tuple.end());
  if (!typed_) std::sort(key.begin(), key.end());
  return key;
}

HyperedgeSplits split_hyperedges(const io::Tuples& train, const io::Tuples& test, double share,
                                 uint64_t seed) {
  auto [splits, firsts] = unsplit(train, test);
  KnownTuples held_out(splits.typed);
  const auto validation = static_cast<size_t>(share * static_cast<double>(firsts.size()));
  RandomStream draws(seed);
  for (size_t i = 0; i < validation; ++i) {  // the first ones in a random order
    std::swap(firsts[i], firsts[i + draws.below(std::ssize(firsts) - static_cast<int64_t>(i))]);
    held_out.insert(splits.row(train, firsts[i]));
  }
  splits.train.values.clear();
  splits.validation = splits.train;
  for (int64_t row = 0; row < train.count(); ++row) {
    const auto tuple = splits.row(train, row);
    io::Tuples& to = held_out.contains(tuple) ? splits.validation : splits.train;
    to.values.insert(to.values.end(), tuple.begin(), tuple.end());
  }
  if (splits.train.count() == 0 || splits.validation.count() == 0) {
    throw InputError("[hyperedges] validation: expected a share that leaves tuples to both, got " +
                     std::to_string(share) + " of " + std::to_string(firsts.size()));
  }
  return splits;
}

HyperedgeSplits splits_chosen_by_test(const io::Tuples& train, const io::Tuples& test) {
  HyperedgeSplits splits = unsplit(train, test).splits;
  splits.validation = test;
  splits.validates_by_test = true;
  return splits;
}

NegativeSampler::NegativeSampler(const HyperedgeSplits& splits,
                                 std::shared_ptr<const KnownTuples> known)
    : typed_(splits.typed), known_(std::move(known)) {
  const io::Tuples& tuples = splits.train;
  int64_t first = 0;
  for (int64_t column = 0; column < tuples.width; ++column) {
    first_.push_back(first);
    count_.push_back(typed_ ? tuples.type_sizes[column] : splits.nodes);
    if (typed_) first += count_.back();
  }
}

int64_t NegativeSampler::draw_node(int64_t column, RandomStream& draws) const {
  return first_[column] + draws.below(count_[column]);
}

bool NegativeSampler::usable(std::span<const int64_t> tuple) const {
  return (typed_ || !has_repeated({tuple.begin(), tuple.end()})) && !known_->contains(tuple);
}

std::vector<int64_t> NegativeSampler::draw(std::span<const int64_t> positive,
                                           RandomStream& draws) const {
  const bool one = draws.unit() < kOneNode;
  const int64_t column = draws.below(std::ssize(positive));
  std::vector<int64_t> negative(positive.begin(), positive.end());
  for (int attempt = 0; one && attempt < kMostAttempts; ++attempt) {
    negative[column] = draw_node(column, draws);
    if (usable(negative)) return negative;
  }
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    for (int64_t each = 0; each < std::ssize(negative); ++each) {
      negative[each] = draw_node(each, draws);
    }
    if (usable(negative)) return negative;
  }
  throw InputError("[hyperedges] negatives: nearly every tuple of these nodes is a hyperedge");
}

Cooccurrence cooccurrence(const HyperedgeSplits& splits) {
  const io::Tuples& tuples = splits.train;
  Cooccurrence result;
  if (splits.typed) {
    int64_t first = 0;
    for (const int64_t nodes : tuples.type_sizes) {
      result.types.push_back({first, nodes, 0});
      first += nodes;
    }
  } else {
    result.types.push_back({0, splits.nodes, 0});
  }
  // per other node: the number of shared tuples
  std::vector<std::map<int64_t, int64_t>> shared(splits.nodes);
  for (int64_t row = 0; row < tuples.count(); ++row) {
    const auto tuple = splits.row(tuples, row);
    for (const int64_t i : tuple) {
      for (const int64_t j : tuple) {
        if (i != j) ++shared[i][j];
      }
    }
  }
  result.offsets = {0};
  for (Cooccurrence::Type& type : result.types) {
    std::map<int64_t, int64_t> most, column;  // of each node that is a column
    for (int64_t i = type.first; i < type.first + type.nodes; ++i) {
      for (const auto& [j, count] : shared[i]) most[j] = std::max(most[j], count);
    }
    for (const auto& [j, count] : most) column[j] = type.columns++;
    for (int64_t i = type.first; i < type.first + type.nodes; ++i) {
      for (const auto& [j, count] : shared[i]) {
        result.columns.push_back(column[j]);
        result.values.push_back(static_cast<float>(count) / static_cast<float>(most[j]));
      }
      result.offsets.push_back(std::ssize(result.columns));
    }
  }
  return result;
}

}  // namespace nsimplex::data
