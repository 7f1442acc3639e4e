// Makes the plan of attention between two tuple lists: the classes, their weights and look-ups.

#include "equivariant/attention/equivariant_attention_classes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>

#include "equivariant/attention/table_meetings.h"
#include "equivariant/classes/partitions.h"
#include "equivariant/join/tuple_join.h"

namespace nsimplex::equivariant {
namespace {

// The number of positions of each block.
std::vector<int64_t> block_sizes(const Partition& pattern) {
  std::vector<int64_t> sizes(block_count(pattern), 0);
  for (const int8_t block : pattern) ++sizes[block];
  return sizes;
}

BlockKinds places(const Partition& pattern) {
  BlockKinds kinds(block_count(pattern));
  for (size_t block = 0; block < kinds.size(); ++block) kinds[block] = static_cast<int64_t>(block);
  return kinds;
}

}  // namespace

BlockKinds key_blocks(const Partition& pattern, const std::vector<int8_t>& match,
                      const TensorKind& input) {
  if (input.symmetry != Symmetry::undirected) return places(pattern);
  BlockKinds kinds = block_sizes(pattern);
  for (size_t block = 0; block < kinds.size(); ++block) {
    kinds[block] = 2 * kinds[block] + (match[block] >= 0 ? 1 : 0);
  }
  return kinds;
}

BlockKinds query_blocks(const Partition& pattern, const TensorKind& output) {
  return output.symmetry == Symmetry::undirected ? block_sizes(pattern) : places(pattern);
}

MapSignature map_signature(const EquivariantClass& light, const TensorKind& input,
                           const BlockKinds& blocks) {
  const SplitClass parts = split(light.members.front(), input.order);
  MapSignature signature;
  for (const int64_t kind : blocks) signature.emplace_back(kind, 0);
  for (int64_t p = 0; p < input.order; ++p) {
    int64_t& filled = signature[parts.match[parts.input[p]]].second;
    filled += input.symmetry == Symmetry::undirected ? 1 : int64_t{1} << p;
  }
  std::sort(signature.begin(), signature.end());
  return signature;
}

bool sees_one_free_node(const EquivariantClass& light, const TensorKind& input,
                        const std::vector<int8_t>& match) {
  const SplitClass parts = split(light.members.front(), input.order);
  return parts.match.size() == 1 && match[parts.match.front()] < 0;
}

namespace {

std::vector<int32_t> narrow(const std::vector<int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

// A class at the outputs of one pattern: terms of one input pattern, one per way to match.
struct Terms {
  Partition input;
  std::vector<std::vector<int8_t>> matches;
  int64_t members = 0;
};

std::vector<bool> matched(const std::vector<int8_t>& match) {
  std::vector<bool> flags;
  flags.reserve(match.size());
  for (const int8_t image : match) flags.push_back(image >= 0);
  return flags;
}

// Members that differ only in the order of an undirected input are one term. Its tuples occur in
// all orders, so the pattern and the matched blocks of the first member represent every term.
std::optional<Terms> terms_of(const EquivariantClass& each, const TensorKind& input,
                              const Partition& output) {
  std::optional<Terms> terms;
  std::vector<bool> flags;
  std::set<std::vector<std::pair<int64_t, int8_t>>> known;
  for (const Partition& member : each.members) {
    const SplitClass parts = split(member, input.order);
    if (parts.output != output) continue;
    if (!terms) {
      terms.emplace().input = parts.input;
      flags = matched(parts.match);
    }
    ++terms->members;
    if (parts.input != terms->input || matched(parts.match) != flags) continue;
    std::vector<std::pair<int64_t, int8_t>> blocks;
    for (size_t block = 0; block < parts.match.size(); ++block) {
      const auto size =
          input.symmetry == Symmetry::undirected
              ? std::count(parts.input.begin(), parts.input.end(), static_cast<int8_t>(block))
              : static_cast<int64_t>(block);
      blocks.emplace_back(size, parts.match[block]);
    }
    std::sort(blocks.begin(), blocks.end());
    if (known.insert(std::move(blocks)).second) terms->matches.push_back(parts.match);
  }
  return terms;
}

class AttentionPlanMaker {
 public:
  AttentionPlanMaker(const graph::TupleView& input, const graph::TupleView& output,
                     const TensorKind& input_kind, const TensorKind& output_kind,
                     const std::vector<LightClasses>& light, bool tables)
      : input_rows_(input.tuples.count),
        input_kind_(input_kind),
        output_kind_(output_kind),
        light_(light),
        tables_(tables),
        join_(input, output) {
    if (input.tuples.count > std::numeric_limits<int32_t>::max() ||
        output.tuples.count > std::numeric_limits<int32_t>::max() ||
        output.nodes() > std::numeric_limits<int32_t>::max()) {
      throw std::length_error("more than 2^31 rows or nodes: split the batch");
    }
  }

  AttentionPlan make(const std::vector<AttentionClass>& classes) {
    std::vector<FirstWeights> first(1);
    for (const AttentionClass& each : classes) {
      first.push_back({first.back().query + std::ssize(each.query_maps),
                       first.back().key + std::ssize(each.key_maps)});
    }
    std::vector<int64_t> output_rows;  // pattern by pattern
    for (size_t q = 0; q < join_.outputs().size(); ++q) {
      const PatternRows& tuples = join_.outputs()[q];
      plan_.outputs.push_back(query_source(q));
      output_rows.insert(output_rows.end(), tuples.rows.begin(), tuples.rows.end());
      for (size_t c = 0; c < classes.size(); ++c) {
        add_part(static_cast<int64_t>(c), classes[c], first[c], q);
      }
    }
    plan_.output_places = inverse(output_rows);
    return std::move(plan_);
  }

 private:
  // The number of the first weight of a class among those of all.
  struct FirstWeights {
    int64_t query = 0, key = 0;
  };

  void add_part(int64_t number, const AttentionClass& each, const FirstWeights& begin,
                size_t output) {
    const Partition& pattern = join_.outputs()[output].pattern;
    const auto terms = terms_of(each.own, input_kind_, pattern);
    if (!terms) return;
    const auto& inputs = join_.inputs();
    const auto found = std::ranges::find(inputs, terms->input, &PatternRows::pattern);
    if (found == inputs.end()) return;  // no such tuples exist
    const auto input = static_cast<size_t>(found - inputs.begin());

    AttentionPart part;
    part.number = number;
    part.queries = plan_.outputs.back();
    part.keys = key_source(input);
    part.multiplicity = terms->members / std::ssize(terms->matches);
    const std::vector<int8_t>& first = terms->matches.front();
    for (size_t block = 0; block < first.size(); ++block) {
      if (first[block] < 0) part.key_only.push_back(static_cast<int64_t>(block));
    }
    for (const std::vector<int8_t>& match : terms->matches) {
      part.terms.push_back(term(output, input, match));
    }
    part.query_weights =
        weights(part.queries, each.query_maps, begin.query, query_blocks(pattern, output_kind_));
    part.key_weights =
        weights(part.keys, each.key_maps, begin.key, key_blocks(terms->input, first, input_kind_));
    if (tables_) part.counts = counts(part, join_.outputs()[output].size());
    plan_.parts.push_back(std::move(part));
  }

  // For every column of a source, the number of its weight; -1 for none.
  std::vector<int64_t> weights(int64_t source, const MapWeights& maps, int64_t begin,
                               const BlockKinds& kinds) const {
    std::vector<int64_t> result;
    for (const int64_t map : maps_[source]) {
      const auto known =
          maps.find(map_signature(light_[kinds.size()].maps[map], input_kind_, kinds));
      result.push_back(known == maps.end() ? -1 : begin + known->second);
    }
    return result;
  }

  AttentionTerm term(size_t output, size_t input, std::vector<int8_t> match) {
    AttentionTerm result;
    result.relation = relation(output, input, match);
    const int64_t blocks = block_count(join_.outputs()[output].pattern);
    for (int64_t block = 0; block < blocks; ++block) {
      if (std::ranges::find(match, static_cast<int8_t>(block)) == match.end()) {
        result.query_only.push_back(block);
      }
    }
    if (!tables_) return result;
    const std::vector<int8_t> own = match;
    for_each_extension(match, 0, blocks, 1, [&](const std::vector<int8_t>& more, int sign) {
      if (more != own) result.extensions.push_back({relation(output, input, more), sign});
    });
    meetings_.add_to(result);
    return result;
  }

  int64_t relation(size_t output, size_t input, const std::vector<int8_t>& match) {
    const auto [kept, images] = matched_blocks(match);
    const auto [known, is_new] =
        relations_.try_emplace({output, images, input, kept}, std::ssize(plan_.relations));
    if (!is_new) return known->second;
    const TupleGroups &keys = join_.groups(input, kept),
                      &queries = join_.output_groups(output, images);
    AttentionRelation relation;
    relation.key_offsets = narrow(keys.offsets);
    relation.keys = narrow(keys.members);
    const std::vector<int64_t> matches = join_.matches(output, images, input, kept);
    relation.query_offsets.resize(keys.size() + 1);
    relation.queries.reserve(queries.members.size());
    int64_t next = 0;  // the first group of keys whose queries have not been visited
    for (int64_t g = 0; g < queries.size(); ++g) {
      if (matches[g] < 0) continue;
      const auto begin = static_cast<int32_t>(relation.queries.size());
      std::fill(relation.query_offsets.begin() + next,
                relation.query_offsets.begin() + matches[g] + 1, begin);
      next = matches[g] + 1;
      relation.queries.insert(relation.queries.end(), queries.members.begin() + queries.offsets[g],
                              queries.members.begin() + queries.offsets[g + 1]);
    }
    std::fill(relation.query_offsets.begin() + next, relation.query_offsets.end(),
              static_cast<int32_t>(relation.queries.size()));
    plan_.relations.push_back(std::move(relation));
    meetings_.add_relation({output, images, input, kept});
    return known->second;
  }

  std::vector<int32_t> counts(const AttentionPart& part, int64_t rows) const {
    std::vector<int32_t> result(rows, 0);
    const auto add = [&](int64_t number, int32_t sign) {
      const AttentionRelation& relation = plan_.relations[number];
      for (size_t g = 1; g < relation.key_offsets.size(); ++g) {
        const int32_t keys = relation.key_offsets[g] - relation.key_offsets[g - 1];
        for (int32_t q = relation.query_offsets[g - 1]; q < relation.query_offsets[g]; ++q) {
          result[relation.queries[q]] += sign * keys;
        }
      }
    };
    for (const AttentionTerm& each : part.terms) {
      add(each.relation, 1);
      for (const auto& [number, sign] : each.extensions) add(number, static_cast<int32_t>(sign));
    }
    return result;
  }

  int64_t key_source(size_t input) {
    const auto [known, is_new] = key_sources_.try_emplace(input, 0);
    if (is_new) {
      const int64_t own = own_map(join_.inputs()[input].pattern);
      known->second = add_source(join_.inputs()[input], own);
      const auto& maps = maps_[known->second];
      plan_.sources[known->second].value_column = std::ranges::find(maps, own) - maps.begin();
    }
    return known->second;
  }

  int64_t query_source(size_t output) {
    // If there is one list, the same tuples are queries and keys.
    return join_.one_list() ? key_source(output) : add_source(join_.outputs()[output], -1);
  }

  // The column of `own_map` is never shared.
  int64_t add_source(const PatternRows& tuples, int64_t own_map) {
    const int64_t blocks = block_count(tuples.pattern), rows = tuples.size();
    AttentionSource source;
    source.rows = rows;
    source.graphs = tuples.graphs;
    source.nodes.resize(rows * blocks);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t b = 0; b < blocks; ++b) {
        source.nodes[b * rows + row] = static_cast<int32_t>(tuples.nodes[row * blocks + b]);
      }
    }
    // Makes a list of tuples of distinct nodes.
    PatternRows list{Partition(blocks), std::vector<int64_t>(rows), tuples.graphs, tuples.nodes};
    std::iota(list.pattern.begin(), list.pattern.end(), int8_t{0});
    std::iota(list.rows.begin(), list.rows.end(), int64_t{0});
    std::vector<PatternRows> lists;
    lists.push_back(std::move(list));
    TupleJoin join(join_, std::move(lists));
    SumPlan all =
        make_sum_plan(join, input_rows_, input_kind_, light_[blocks].maps, light_[blocks].bias);
    maps_.push_back(split_columns(all, own_map, source));
    plan_.sources.push_back(std::move(source));
    return std::ssize(plan_.sources) - 1;
  }

  // The light map that fills every position with its own block.
  int64_t own_map(const Partition& pattern) const {
    const int64_t blocks = block_count(pattern);
    Partition whole = pattern;
    for (int8_t block = 0; block < blocks; ++block) whole.push_back(block);
    const auto& maps = light_[blocks].maps;
    const auto own = std::ranges::find_if(maps, [&](const EquivariantClass& map) {
      return std::ranges::find(map.members, whole) != map.members.end();
    });
    return own - maps.begin();
  }

  int64_t input_rows_;
  const TensorKind &input_kind_, &output_kind_;
  const std::vector<LightClasses>& light_;
  bool tables_;
  TupleJoin join_;
  std::vector<std::vector<int64_t>> maps_;  // the light map of each column, per source
  std::map<size_t, int64_t> key_sources_;
  std::map<std::tuple<size_t, Blocks, size_t, Blocks>, int64_t> relations_;
  AttentionPlan plan_;
  MeetingMaker meetings_{join_, plan_};
};

}  // namespace

AttentionPlan make_attention_plan(const graph::TupleView& input, const graph::TupleView& output,
                                  const TensorKind& input_kind, const TensorKind& output_kind,
                                  const std::vector<AttentionClass>& classes,
                                  const std::vector<LightClasses>& light, bool tables) {
  return AttentionPlanMaker(input, output, input_kind, output_kind, light, tables).make(classes);
}

}  // namespace nsimplex::equivariant
