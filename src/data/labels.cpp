#include <ATen/ATen.h>

#include <algorithm>

#include "data/observations.h"
#include "data/row_texts.h"
#include "io/file_bytes.h"

namespace nsimplex::data {
Labels read_labels(const std::string& path, const Observations& observations) {
  const io::FileBytes file(path);
  const io::Source source{path, file.bytes()};
  RowTexts read = read_row_texts(source, observations, "label", /*numbers=*/false);
  const std::vector<std::string>& text = read.texts;
  Labels labels;
  labels.reading = std::move(read.reading);
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
