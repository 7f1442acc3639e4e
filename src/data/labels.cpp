#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "data/observations.h"
#include "io/cells.h"
#include "io/mapped_file.h"

namespace nsimplex::data {
namespace {

std::string line(int64_t number, const char* why) {
  return std::string("line ").append(std::to_string(number)).append(": ").append(why);
}

// The text of each row's label, in the order of the observations.
std::vector<std::string> texts(const io::Source& source, const Observations& observations) {
  const io::Cells cells(source);
  const int64_t count = observations.values.size(0);
  std::vector<std::string> in_order;
  std::map<std::string, std::string> by_name;
  for (int64_t row = 1; row < cells.rows(); ++row) {
    const auto own = cells.row(row);
    if (own.size() != cells.row(0).size() || own.empty() || own.size() > 2) {
      source.fail(line(cells.line(row), "expected a label, or a name and a label"));
    }
    in_order.emplace_back(own.back());
    if (own.size() == 1) continue;
    if (!by_name.emplace(std::string(own.front()), in_order.back()).second) {
      source.fail(line(cells.line(row), "a second label of ").append(io::quoted(own.front())));
    }
  }
  if (by_name.empty() || observations.names.empty()) {
    if (std::ssize(in_order) == count) return in_order;
    source.fail(std::string("expected ")
                    .append(std::to_string(count))
                    .append(" labels, one a row of the table, got ")
                    .append(std::to_string(in_order.size())));
  }
  in_order.clear();
  for (const std::string& name : observations.names) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) source.fail(std::string("no label of row ").append(name));
    in_order.push_back(found->second);
  }
  return in_order;
}

}  // namespace

Labels read_labels(const std::string& path, const Observations& observations) {
  const io::MappedFile file(path);
  const io::Source source{path, file.bytes()};
  const std::vector<std::string> text = texts(source, observations);
  Labels labels;
  labels.classes = text;
  std::sort(labels.classes.begin(), labels.classes.end());
  labels.classes.erase(std::unique(labels.classes.begin(), labels.classes.end()),
                       labels.classes.end());
  if (labels.classes.size() < 2) {
    source.fail(std::string("expected two different labels, got ")
                    .append(std::to_string(labels.classes.size())));
  }
  std::vector<int64_t> numbers;
  for (const std::string& each : text) {
    numbers.push_back(std::lower_bound(labels.classes.begin(), labels.classes.end(), each) -
                      labels.classes.begin());
  }
  labels.numbers = at::tensor(numbers, at::kLong);
  return labels;
}

}  // namespace nsimplex::data
