// Graphs whose edges have open directions, and the acyclic graphs that they stand for.

#include "causal/graph/partial_graph.h"

#include <functional>
#include <string>

#include "support/error.h"

namespace nsimplex::causal {

PartialGraph::PartialGraph(const Matrix& graph)
    : features_(graph.rows()), entries_(static_cast<size_t>(graph.size())) {
  for (int64_t cause = 0; cause < features_; ++cause) {
    for (int64_t effect = 0; effect < features_; ++effect) {
      entries_[at(cause, effect)] = cause != effect && graph(cause, effect) != 0;
    }
  }
}

bool PartialGraph::is_open() const {
  for (int64_t one = 0; one < features_; ++one) {
    for (int64_t other = 0; other < one; ++other) {
      if (line(one, other)) return true;
    }
  }
  return false;
}

// Whether a column may be the last of those left: it causes none of them, and a column that an open
// edge joins with it, which becomes its cause, is joined with all its other neighbours.
bool PartialGraph::may_be_taken_off(int64_t column, std::span<const char> left) const {
  std::vector<int64_t> near;
  for (int64_t other = 0; other < features_; ++other) {
    if (left[static_cast<size_t>(other)] == 0 || !joined(column, other)) continue;
    if (arrow(column, other)) return false;
    near.push_back(other);
  }
  for (const int64_t one : near) {
    if (!line(one, column)) continue;
    for (const int64_t other : near) {
      if (other != one && !joined(one, other)) return false;
    }
  }
  return true;
}

std::optional<Matrix> PartialGraph::member() const {
  Matrix found = Matrix::Zero(features_, features_);
  std::vector<char> left(static_cast<size_t>(features_), 1);
  for (int64_t count = features_; count > 0; --count) {
    int64_t last = features_ - 1;
    while (last >= 0 && (left[static_cast<size_t>(last)] == 0 || !may_be_taken_off(last, left))) {
      --last;
    }
    if (last < 0) return std::nullopt;
    left[static_cast<size_t>(last)] = 0;
    for (int64_t other = 0; other < features_; ++other) {
      if (left[static_cast<size_t>(other)] != 0 && joined(last, other)) found(other, last) = 1;
    }
  }
  return found;
}

// Whether columns that open edges join with `column` may all be its causes without a collider that
// the graph does not have.
bool PartialGraph::may_be_causes(int64_t column, std::span<const int64_t> causes) const {
  for (const int64_t cause : causes) {
    for (int64_t other = 0; other < features_; ++other) {
      if (other != cause && arrow(other, column) && !joined(cause, other)) return false;
    }
    for (const int64_t other : causes) {
      if (other != cause && !joined(cause, other)) return false;
    }
  }
  return true;
}

std::vector<Matrix> PartialGraph::members_by_causes(int64_t column, int64_t most) const {
  std::vector<int64_t> open;
  for (int64_t other = 0; other < features_; ++other) {
    if (line(column, other)) open.push_back(other);
  }
  std::vector<Matrix> found;
  std::vector<int64_t> causes;
  const auto add = [&] {
    PartialGraph directed = *this;
    for (const int64_t other : open) directed.direct(column, other);
    for (const int64_t cause : causes) {
      directed.entries_[at(cause, column)] = 1;
      directed.direct(cause, column);
    }
    std::optional<Matrix> graph = directed.member();
    if (graph) found.push_back(*std::move(graph));
    if (std::ssize(found) > most) {
      throw InputError(std::string("graph: expected at most ")
                           .append(std::to_string(most))
                           .append(" sets of causes that column ")
                           .append(std::to_string(column))
                           .append(" may have, got more"));
    }
  };
  const std::function<void(size_t)> extend = [&](size_t first) {
    add();
    for (size_t next = first; next < open.size(); ++next) {
      causes.push_back(open[next]);
      if (may_be_causes(column, causes)) extend(next + 1);
      causes.pop_back();
    }
  };
  extend(0);
  if (found.empty()) throw InputError("graph: expected directions that an acyclic graph can have");
  return found;
}

}  // namespace nsimplex::causal
