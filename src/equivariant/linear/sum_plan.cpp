// Computes which input tuples each class sums for each output tuple.

#include "equivariant/linear/sum_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "equivariant/classes/partitions.h"
#include "equivariant/join/tuple_join.h"

namespace nsimplex::equivariant {
namespace {

// A partial matching of input blocks to output blocks, for one input pattern.
struct Matching {
  size_t input;
  std::vector<int8_t> match;  // per input block: an output block or -1
};

int32_t narrow(int64_t number) {
  if (number > std::numeric_limits<int32_t>::max()) {
    throw std::length_error("more look-ups than 2^31: split the batch");
  }
  return static_cast<int32_t>(number);
}

class PlanMaker {
 public:
  PlanMaker(TupleJoin& join, int64_t input_rows, const TensorKind& input,
            const std::vector<EquivariantClass>& classes)
      : join_(join), input_(input), classes_(classes) {
    plan_.sources = input_rows;
    plan_.group_offsets.push_back(0);
  }

  void add_part(size_t output, int64_t bias_class) {
    const PatternRows& tuples = join_.outputs()[output];
    PatternPart part{.rows = tuples.size(), .bias_class = bias_class};
    std::vector<Matching> matchings;
    std::vector<int32_t> terms;
    for (size_t c = 0; c < classes_.size(); ++c) {
      const auto coefficients = terms_of(classes_[c], tuples.pattern, matchings);
      if (coefficients.empty()) continue;
      for (const auto& [lookup, coefficient] : coefficients) {
        terms.insert(terms.end(), {static_cast<int32_t>(part.classes.size()),
                                   static_cast<int32_t>(lookup), coefficient});
      }
      part.classes.push_back(static_cast<int64_t>(c));
    }
    drop_unused(terms, matchings);
    part.lookups = std::ssize(matchings);
    part.terms = std::ssize(terms) / 3;
    add_lookups(output, matchings);
    add_counts(part, terms);
    plan_.terms.insert(plan_.terms.end(), terms.begin(), terms.end());
    output_rows_.insert(output_rows_.end(), tuples.rows.begin(), tuples.rows.end());
    plan_.parts.push_back(std::move(part));
    known_.clear();
  }

  SumPlan finish() {
    Transposed sources = transpose(plan_.lookups, plan_.sources + plan_.groups());
    plan_.source_offsets = std::move(sources.offsets);
    plan_.source_lookups = std::move(sources.places);
    add_row_sources();
    plan_.output_places = inverse(output_rows_);
    return std::move(plan_);
  }

 private:
  // The look-ups of a class at outputs of this pattern, with their multiplicities. All members that
  // end in the pattern are added. For an undirected input, look-ups that differ only in the order
  // of its positions are one.
  std::map<size_t, int32_t> terms_of(const EquivariantClass& each, const Partition& output,
                                     std::vector<Matching>& matchings) {
    std::map<size_t, int32_t> coefficients;
    for (const Partition& member : each.members) {
      SplitClass parts = split(member, input_.order);
      if (parts.output != output) continue;
      const auto& inputs = join_.inputs();
      const auto input = std::ranges::find(inputs, parts.input, &PatternRows::pattern);
      if (input == inputs.end()) continue;  // no such tuples exist
      const auto number = static_cast<size_t>(input - inputs.begin());
      for_each_extension(parts.match, 0, block_count(output), 1,
                         [&](const std::vector<int8_t>& match, int sign) {
                           coefficients[lookup_number({number, match}, matchings)] += sign;
                         });
    }
    std::erase_if(coefficients, [](const auto& entry) { return entry.second == 0; });
    return coefficients;
  }

  size_t lookup_number(Matching matching, std::vector<Matching>& matchings) {
    // Equal keys mean equal look-ups: the pattern and the blocks, or for an undirected input the
    // sizes of the matched and the other blocks.
    std::vector<std::pair<int64_t, int8_t>> key;
    const Partition& pattern = join_.inputs()[matching.input].pattern;
    for (size_t block = 0; block < matching.match.size(); ++block) {
      const auto size = std::count(pattern.begin(), pattern.end(), static_cast<int8_t>(block));
      key.emplace_back(size, matching.match[block]);
    }
    if (input_.symmetry == Symmetry::undirected) {
      std::sort(key.begin(), key.end());
    } else {
      key.emplace_back(static_cast<int64_t>(matching.input), 0);
    }
    const auto [known, is_new] = known_.emplace(std::move(key), matchings.size());
    if (is_new) matchings.push_back(std::move(matching));
    return known->second;
  }

  // Removes look-ups whose terms all cancel, because nothing would read them or write their
  // gradients.
  static void drop_unused(std::vector<int32_t>& terms, std::vector<Matching>& matchings) {
    std::vector<int32_t> number(matchings.size(), -1);
    std::vector<Matching> used;
    for (size_t t = 1; t < terms.size(); t += 3) {
      int32_t& own = number[terms[t]];
      if (own < 0) {
        own = static_cast<int32_t>(used.size());
        used.push_back(std::move(matchings[terms[t]]));
      }
      terms[t] = own;
    }
    matchings = std::move(used);
  }

  void add_lookups(size_t output, const std::vector<Matching>& matchings) {
    const int64_t rows = join_.outputs()[output].size(), width = std::ssize(matchings);
    const auto begin = std::ssize(plan_.lookups);
    plan_.lookups.resize(begin + rows * width);
    narrow(std::ssize(plan_.lookups));
    for (int64_t t = 0; t < width; ++t) {
      const auto& [input, match] = matchings[t];
      const auto [kept, images] = matched_blocks(match);
      const std::vector<int64_t>& found = join_.lookup(output, images, input, kept);
      const TupleGroups& groups = join_.groups(input, kept);
      const std::vector<int64_t>& input_rows = join_.inputs()[input].rows;
      int32_t* const to = plan_.lookups.data() + begin + t;
      // If all blocks are matched, a group is one tuple.
      const bool single = kept.size() == match.size();
      const int64_t base = single ? 0 : table(input, kept, groups);
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t group = found[row];
        to[row * width] = narrow(group < 0 ? -1
                                 : single  ? input_rows[groups.members[group]]
                                           : base + group);
      }
    }
  }

  // The source number of the first group of a table. A new table is added.
  int64_t table(size_t input, const Blocks& kept, const TupleGroups& groups) {
    const auto [known, is_new] = tables_.try_emplace({input, kept}, plan_.sources + plan_.groups());
    if (is_new) {
      const auto begin = std::ssize(plan_.group_rows);
      for (size_t g = 1; g < groups.offsets.size(); ++g) {
        plan_.group_offsets.push_back(narrow(begin + groups.offsets[g]));
      }
      const std::vector<int64_t>& rows = join_.inputs()[input].rows;
      for (const int64_t member : groups.members) plan_.group_rows.push_back(narrow(rows[member]));
    }
    return known->second;
  }

  int32_t source_size(int32_t source) const {
    if (source < 0) return 0;
    if (source < plan_.sources) return 1;
    const auto* const offset = plan_.group_offsets.data() + (source - plan_.sources);
    return offset[1] - offset[0];
  }

  void add_counts(const PatternPart& part, const std::vector<int32_t>& terms) {
    const auto width = std::ssize(part.classes);
    const auto begin = std::ssize(plan_.counts);
    plan_.counts.resize(begin + part.rows * width);
    narrow(std::ssize(plan_.counts));
    const int32_t* lookup = plan_.lookups.data() + plan_.lookups.size() - part.rows * part.lookups;
    int32_t* count = plan_.counts.data() + begin;
    for (int64_t row = 0; row < part.rows; ++row, lookup += part.lookups, count += width) {
      for (size_t t = 0; t < terms.size(); t += 3) {
        count[terms[t]] += terms[t + 2] * source_size(lookup[terms[t + 1]]);
      }
    }
  }

  void add_row_sources() {
    const Transposed entries = transpose(plan_.group_rows, plan_.sources);
    std::vector<int32_t> group_of(plan_.group_rows.size());
    for (int64_t g = 0; g < plan_.groups(); ++g) {
      std::fill(group_of.begin() + plan_.group_offsets[g],
                group_of.begin() + plan_.group_offsets[g + 1], narrow(plan_.sources + g));
    }
    plan_.row_offsets.push_back(0);
    for (int64_t row = 0; row < plan_.sources; ++row) {
      plan_.row_sources.push_back(narrow(row));
      for (int32_t e = entries.offsets[row]; e < entries.offsets[row + 1]; ++e) {
        plan_.row_sources.push_back(group_of[entries.places[e]]);
      }
      plan_.row_offsets.push_back(narrow(std::ssize(plan_.row_sources)));
    }
  }

  TupleJoin& join_;
  const TensorKind& input_;
  const std::vector<EquivariantClass>& classes_;
  std::map<std::vector<std::pair<int64_t, int8_t>>, size_t> known_;  // look-ups of this part
  std::map<std::pair<size_t, Blocks>, int64_t> tables_;
  std::vector<int64_t> output_rows_;  // part by part
  SumPlan plan_;
};

}  // namespace

std::vector<int64_t> inverse(const std::vector<int64_t>& permutation) {
  std::vector<int64_t> places(permutation.size());
  for (size_t place = 0; place < places.size(); ++place) {
    places[permutation[place]] = static_cast<int64_t>(place);
  }
  return places;
}

Transposed transpose(const std::vector<int32_t>& numbers, int64_t limit) {
  Transposed result;
  result.offsets.assign(limit + 1, 0);
  for (const int32_t number : numbers) {
    if (number >= 0) ++result.offsets[number + 1];
  }
  std::partial_sum(result.offsets.begin(), result.offsets.end(), result.offsets.begin());
  result.places.resize(result.offsets.back());
  std::vector<int32_t> next(result.offsets.begin(), result.offsets.end() - 1);
  for (size_t place = 0; place < numbers.size(); ++place) {
    if (numbers[place] >= 0) result.places[next[numbers[place]]++] = static_cast<int32_t>(place);
  }
  return result;
}

SumPlan make_sum_plan(TupleJoin& join, int64_t input_rows, const TensorKind& input,
                      const std::vector<EquivariantClass>& classes,
                      const std::vector<EquivariantClass>& bias_classes) {
  PlanMaker maker(join, narrow(input_rows), input, classes);
  for (size_t q = 0; q < join.outputs().size(); ++q) {
    const Partition& pattern = join.outputs()[q].pattern;
    const auto bias = std::ranges::find_if(bias_classes, [&](const EquivariantClass& each) {
      return std::ranges::find(each.members, pattern) != each.members.end();
    });
    maker.add_part(q, bias - bias_classes.begin());
  }
  return maker.finish();
}

SumPlan make_gather_plan(std::vector<int32_t> lookups, int64_t columns, int64_t input_rows) {
  SumPlan plan;
  plan.sources = input_rows;
  plan.group_offsets.push_back(0);
  plan.row_offsets.resize(input_rows + 1);
  std::iota(plan.row_offsets.begin(), plan.row_offsets.end(), 0);
  plan.row_sources.resize(input_rows);
  std::iota(plan.row_sources.begin(), plan.row_sources.end(), 0);
  PatternPart part;
  part.rows = columns == 0 ? 0 : std::ssize(lookups) / columns;
  part.lookups = part.terms = columns;
  for (int64_t c = 0; c < columns; ++c) {
    part.classes.push_back(c);
    plan.terms.insert(plan.terms.end(), {narrow(c), narrow(c), 1});
  }
  plan.output_places.resize(part.rows);
  std::iota(plan.output_places.begin(), plan.output_places.end(), 0);
  plan.counts.reserve(lookups.size());
  for (const int32_t row : lookups) plan.counts.push_back(row < 0 ? 0 : 1);
  Transposed sources = transpose(lookups, input_rows);
  plan.source_offsets = std::move(sources.offsets);
  plan.source_lookups = std::move(sources.places);
  plan.lookups = std::move(lookups);
  plan.parts.push_back(std::move(part));
  return plan;
}

}  // namespace nsimplex::equivariant
