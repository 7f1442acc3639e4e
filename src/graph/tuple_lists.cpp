// Sorts, enumerates and checks lists of node tuples.

#include "graph/tuple_lists.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <string>

#include "support/error.h"

namespace nsimplex::graph {
namespace {

// Bits per pass: as many places to write to as the first-level cache and its page table hold.
constexpr int kDigitBits = 8;
constexpr uint64_t kDigits = uint64_t{1} << kDigitBits;
constexpr int kKeyBits = 64;

struct Keyed {
  uint64_t key;
  int64_t row;
};

// Sorts by the lower `bits` of the keys; equal keys keep their order. Each pass reads and writes
// memory from front to back. Sorting only row numbers would not.
void sort_by_key(std::vector<Keyed>& items, std::vector<Keyed>& spare, int bits) {
  for (int shift = 0; shift < bits; shift += kDigitBits) {
    std::array<int64_t, kDigits> place{};
    for (const Keyed& item : items) ++place[item.key >> shift & (kDigits - 1)];
    std::exclusive_scan(place.begin(), place.end(), place.begin(), int64_t{0});
    for (const Keyed& item : items) spare[place[item.key >> shift & (kDigits - 1)]++] = item;
    items.swap(spare);
  }
}

bool ascends(const Rows& rows) {
  for (int64_t row = 1; row < rows.count; ++row) {
    if (row_before(rows, row, row - 1)) return false;
  }
  return true;
}

// The values of rows that fit into a single key.
std::vector<int64_t> values_of_keys(const std::vector<Keyed>& items, int64_t width, int bits) {
  const uint64_t mask = bits == kKeyBits ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  std::vector<int64_t> values(items.size() * width);
  for (size_t i = 0; i < items.size(); ++i) {
    for (int64_t column = 0; column < width; ++column) {
      values[i * width + column] =
          static_cast<int64_t>(items[i].key >> (width - 1 - column) * bits & mask);
    }
  }
  return values;
}

}  // namespace

SortedRows sort_rows(const Rows& rows, int64_t limit) {
  SortedRows sorted;
  sorted.order.resize(rows.count);
  std::iota(sorted.order.begin(), sorted.order.end(), int64_t{0});
  if (ascends(rows)) {
    sorted.values.assign(rows.values, rows.values + rows.count * rows.width);
    return sorted;
  }
  // As many columns as fit make one key. Keys are sorted from the last to the first.
  const int bits = std::bit_width(static_cast<uint64_t>(std::max<int64_t>(limit - 1, 1)));
  const int64_t columns = kKeyBits / bits;
  std::vector<Keyed> items(rows.count), spare(rows.count);
  for (int64_t end = rows.width; end > 0; end -= columns) {
    const int64_t first = std::max<int64_t>(end - columns, 0);
    for (int64_t i = 0; i < rows.count; ++i) {
      uint64_t key = 0;
      for (const int64_t entry : rows[sorted.order[i]].subspan(first, end - first)) {
        key = key << bits | static_cast<uint64_t>(entry);
      }
      items[i] = {key, sorted.order[i]};
    }
    sort_by_key(items, spare, static_cast<int>(end - first) * bits);
    for (int64_t i = 0; i < rows.count; ++i) sorted.order[i] = items[i].row;
  }
  if (columns >= rows.width) {
    sorted.values = values_of_keys(items, rows.width, bits);
    return sorted;
  }
  sorted.values.reserve(rows.count * rows.width);
  for (const int64_t row : sorted.order) {
    sorted.values.insert(sorted.values.end(), rows[row].begin(), rows[row].end());
  }
  return sorted;
}

namespace {

// Visits the tuples of `order` entries out of `values` (ascending, each once) in lexicographic
// order: visit(tuple). `lowest(tuple, depth)` is the first position that entry `depth` may have.
class Enumeration {
 public:
  Enumeration(std::span<const int64_t> values, int64_t order, Symmetry symmetry, bool loops)
      : values_(values), symmetry_(symmetry), loops_(loops), tuple_(order), place_(order) {}

  template <class Visit>
  void run(Visit&& visit, size_t depth = 0) {
    if (depth == tuple_.size()) return visit(std::span<const int64_t>(tuple_));
    for (size_t at = first(depth); at < values_.size(); ++at) {
      if (!loops_ && is_used(at, depth)) continue;
      place_[depth] = at;
      tuple_[depth] = values_[at];
      run(visit, depth + 1);
    }
  }

 private:
  size_t first(size_t depth) const {
    return symmetry_ == Symmetry::undirected && depth > 0 ? place_[depth - 1] : 0;
  }
  bool is_used(size_t at, size_t depth) const {
    return std::find(place_.begin(), place_.begin() + depth, at) != place_.begin() + depth;
  }

  std::span<const int64_t> values_;
  Symmetry symmetry_;
  bool loops_;
  std::vector<int64_t> tuple_;
  std::vector<size_t> place_;
};

// Counts the tuples of one row or graph after another before they are made.
class Room {
 public:
  explicit Room(int64_t order) : order_(order) {}

  // `tuples` is -1 if their number is beyond int64.
  void take(int64_t tuples) {
    const int64_t width = std::max<int64_t>(order_, 1);
    if (tuples < 0 || tuples > (kMostEntries - entries_) / width) {
      throw InputError("order: expected tuples of at most " + std::to_string(kMostEntries) +
                       " entries in all, got more of order " + std::to_string(order_));
    }
    entries_ += tuples * width;
  }

 private:
  int64_t order_, entries_ = 0;
};

// The number of different permutations of an ascending row; -1 beyond int64.
int64_t permutation_count(std::span<const int64_t> ascending) {
  __int128 count = 1;
  for (size_t at = 0, equal = 0; at < ascending.size(); ++at) {
    equal = at > 0 && ascending[at] == ascending[at - 1] ? equal + 1 : 1;
    count = count * static_cast<__int128>(at + 1) / static_cast<__int128>(equal);
    if (count > INT64_MAX) return -1;
  }
  return static_cast<int64_t>(count);
}

}  // namespace

TupleList sorted_unique(const TupleList& list, int64_t limit) {
  SortedRows sorted = sort_rows(list.rows(), limit);
  const int64_t width = list.width;
  int64_t kept = 0;
  for (int64_t row = 0; row < list.count(); ++row) {
    const auto begin = sorted.values.begin() + row * width;
    const auto last = sorted.values.begin() + (kept - 1) * width;
    if (kept > 0 && std::equal(begin, begin + width, last)) continue;
    std::copy(begin, begin + width, sorted.values.begin() + kept * width);
    sorted.order[kept++] = list.origin[sorted.order[row]];
  }
  sorted.values.resize(kept * width);
  sorted.order.resize(kept);
  return {width, std::move(sorted.values), std::move(sorted.order)};
}

int64_t complete_count(int64_t nodes, int64_t order, Symmetry symmetry, bool loops) {
  // Each step multiplies by the number of values of the next entry. For unordered tuples a division
  // by the step keeps the product equal to the number of (multi)sets so far.
  __int128 count = 1;
  for (int64_t step = 0; step < order; ++step) {
    const bool sets = symmetry == Symmetry::undirected;
    const __int128 n = nodes;
    const __int128 choices = !loops ? std::max<__int128>(n - step, 0) : sets ? n + step : n;
    count *= choices;
    if (sets) count /= step + 1;
    if (count > INT64_MAX) return -1;
  }
  return static_cast<int64_t>(count);
}

TupleList complete_tuples(std::span<const int64_t> node_offsets, int64_t order, Symmetry symmetry,
                          bool loops) {
  TupleList list{order, {}, {}};
  Room room(order);
  std::vector<int64_t> nodes;
  for (size_t graph = 0; graph + 1 < node_offsets.size(); ++graph) {
    room.take(
        complete_count(node_offsets[graph + 1] - node_offsets[graph], order, symmetry, loops));
    nodes.clear();
    for (int64_t node = node_offsets[graph]; node < node_offsets[graph + 1]; ++node) {
      nodes.push_back(node);
    }
    Enumeration(nodes, order, symmetry, loops).run([&](std::span<const int64_t> tuple) {
      list.add(tuple, -1);
    });
  }
  return list;
}

TupleList with_loops(const TupleView& batch) {
  TupleList list{batch.tuples.width, {}, {}};
  list.reserve(batch.tuples.count + batch.nodes());
  for (int64_t row = 0; row < batch.tuples.count; ++row) list.add(batch.tuples[row], row);
  std::vector<int64_t> loop(batch.tuples.width);
  for (int64_t node = 0; node < batch.nodes(); ++node) {
    std::fill(loop.begin(), loop.end(), node);
    list.add(loop, -1);
  }
  return sorted_unique(list, batch.nodes());  // of a loop that was there, the first: its row
}

TupleList all_orders(const TupleView& batch) {
  TupleList list{batch.tuples.width, {}, {}};
  Room room(list.width);
  std::vector<int64_t> tuple;
  for (int64_t row = 0; row < batch.tuples.count; ++row) {
    const auto entries = batch.tuples[row];
    tuple.assign(entries.begin(), entries.end());
    std::sort(tuple.begin(), tuple.end());
    room.take(permutation_count(tuple));
    do {
      list.add(tuple, row);
    } while (std::next_permutation(tuple.begin(), tuple.end()));
  }
  return sorted_unique(list, batch.nodes());
}

TupleList project(const TupleView& batch, int64_t order, Symmetry symmetry) {
  TupleList list{order, {}, {}};
  if (order == 0) {
    list.origin.assign(batch.graphs(), -1);
    return list;
  }
  Room room(order);
  std::vector<int64_t> entries;
  for (int64_t row = 0; row < batch.tuples.count; ++row) {
    entries.assign(batch.tuples[row].begin(), batch.tuples[row].end());
    std::sort(entries.begin(), entries.end());
    entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
    const bool loops = symmetry != Symmetry::loop_free;
    room.take(complete_count(std::ssize(entries), order, symmetry, loops));
    Enumeration(entries, order, symmetry, loops).run([&](std::span<const int64_t> tuple) {
      list.add(tuple, row);
    });
  }
  return sorted_unique(list, batch.nodes());
}

std::vector<int64_t> offsets_of_sorted(const TupleList& list,
                                       std::span<const int64_t> node_offsets) {
  std::vector<int64_t> offsets = {0};
  const Rows rows = list.rows();
  int64_t row = 0;
  for (size_t graph = 1; graph < node_offsets.size(); ++graph) {
    // Empty tuples: one per graph.
    if (list.width == 0) {
      row = std::min<int64_t>(row + 1, list.count());
    } else {
      while (row < rows.count && rows[row][0] < node_offsets[graph]) ++row;
    }
    offsets.push_back(row);
  }
  return offsets;
}

namespace {

using Fault = std::optional<std::string>;

std::string text(int64_t number) { return std::to_string(number); }

Fault find_entry_fault(const TupleView& batch, const std::string& name, int64_t graph,
                       int64_t row) {
  const auto tuple = batch.tuples[row];
  const int64_t begin = batch.node_offsets[graph], end = batch.node_offsets[graph + 1];
  for (const int64_t node : tuple) {
    if (node < begin || node >= end) {
      return name + ": expected nodes " + text(begin) + " to " + text(end - 1) + " in graph " +
             text(graph) + ", got " + text(node) + " in row " + text(row);
    }
  }
  if (batch.symmetry == Symmetry::loop_free) {
    for (size_t i = 1; i < tuple.size(); ++i) {
      const auto before = tuple.first(i);
      if (std::find(before.begin(), before.end(), tuple[i]) != before.end()) {
        return name + ": expected distinct nodes in a loop-free tuple, got " + to_string(tuple) +
               " in row " + text(row);
      }
    }
  }
  if (batch.symmetry == Symmetry::undirected && !std::is_sorted(tuple.begin(), tuple.end())) {
    return name + ": expected ascending nodes in an undirected tuple, got " + to_string(tuple) +
           " in row " + text(row);
  }
  return std::nullopt;
}

Fault find_repetition(const TupleView& batch, const std::string& name) {
  const Rows& tuples = batch.tuples;
  if (tuples.width == 0) {
    for (int64_t graph = 0; graph < batch.graphs(); ++graph) {
      const int64_t rows = batch.tuple_offsets[graph + 1] - batch.tuple_offsets[graph];
      if (rows > 1) {
        return name + ": expected the empty tuple at most once in a graph, got " + text(rows) +
               " times in graph " + text(graph);
      }
    }
    return std::nullopt;
  }
  // Nodes are numbered through the batch, so equal rows belong to the same graph.
  const SortedRows sorted = sort_rows(tuples, batch.node_offsets.back());
  const Rows rows{sorted.values.data(), tuples.count, tuples.width};
  for (int64_t i = 1; i < rows.count; ++i) {
    if (rows_equal(rows, i - 1, i)) {
      return name + ": expected every tuple once, got " + to_string(rows[i]) + " in rows " +
             text(sorted.order[i - 1]) + " and " + text(sorted.order[i]);
    }
  }
  return std::nullopt;
}

}  // namespace

Fault find_offset_fault(const char* name, std::span<const int64_t> offsets) {
  const std::string argument = name;
  if (offsets.empty()) return argument + ": expected at least one entry, got none";
  if (offsets[0] != 0) return argument + ": expected 0 first, got " + text(offsets[0]);
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) {
      return argument + ": expected numbers that do not fall, got " + text(offsets[i]) + " after " +
             text(offsets[i - 1]) + " at " + std::to_string(i);
    }
  }
  return std::nullopt;
}

std::string to_string(std::span<const int64_t> tuple) {
  std::string result = "(";
  for (size_t i = 0; i < tuple.size(); ++i) result += (i == 0 ? "" : ", ") + text(tuple[i]);
  return result + ")";
}

Fault find_tuple_fault(const TupleView& batch, const char* tuples) {
  if (Fault fault = find_offset_fault("tuple_offsets", batch.tuple_offsets)) return fault;
  if (Fault fault = find_offset_fault("node_offsets", batch.node_offsets)) return fault;
  if (batch.node_offsets.size() != batch.tuple_offsets.size()) {
    return "node_offsets: expected " + std::to_string(batch.tuple_offsets.size()) +
           " entries as tuple_offsets has, got " + std::to_string(batch.node_offsets.size());
  }
  // Most functions have a number per node. Larger ones come from damaged files.
  if (batch.node_offsets.back() > kMostMade) {
    return "node_offsets: expected at most " + text(kMostMade) + " nodes, got " +
           text(batch.node_offsets.back());
  }
  if (batch.tuple_offsets.back() != batch.tuples.count) {
    return "tuple_offsets: expected the number of tuples, " + text(batch.tuples.count) +
           ", last, got " + text(batch.tuple_offsets.back());
  }
  for (int64_t graph = 0; graph < batch.graphs(); ++graph) {
    for (int64_t row = batch.tuple_offsets[graph]; row < batch.tuple_offsets[graph + 1]; ++row) {
      if (Fault fault = find_entry_fault(batch, tuples, graph, row)) return fault;
    }
  }
  return find_repetition(batch, tuples);
}

}  // namespace nsimplex::graph
