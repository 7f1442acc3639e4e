// The classes for Python: operators without tensors among their arguments.

#include "equivariant/classes/equivariant_classes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "equivariant/classes/partitions.h"
#include "support/named_option.h"

namespace nsimplex::equivariant {
namespace {

constexpr NameList kList{.got = ""};

}  // namespace

ClassSet parse_class_set(std::string_view text, const char* name) {
  return named_option<ClassSet>(name, "classes", text, kList);
}
Pooling parse_pooling(std::string_view text, const char* name) {
  return named_option<Pooling>(name, "pooling", text, kList);
}
AttentionForm parse_attention_form(std::string_view text, const char* name) {
  return named_option<AttentionForm>(name, "form", text, kList);
}
AttentionKeys parse_attention_keys(std::string_view text, const char* name) {
  return named_option<AttentionKeys>(name, "keys", text, kList);
}
FeatureMap parse_feature_map(std::string_view text, const char* name) {
  return named_option<FeatureMap>(name, "features", text, kList);
}

}  // namespace nsimplex::equivariant

namespace nsimplex {
namespace {

using equivariant::block_count;

// The part of a partition that does not change if the positions of undirected sides are permuted.
// It is a set of blocks. Each has its positions on each side, or their number if they may be
// permuted.
using Signature = std::vector<std::pair<int64_t, int64_t>>;

Signature signature(const Partition& partition, const TensorKind& input, const TensorKind& output) {
  Signature blocks(block_count(partition));
  const auto mark = [](int64_t& side, const TensorKind& kind, int64_t position) {
    side += kind.symmetry == Symmetry::undirected ? 1 : int64_t{1} << position;
  };
  for (int64_t p = 0; p < static_cast<int64_t>(partition.size()); ++p) {
    auto& [in, out] = blocks[partition[p]];
    p < input.order ? mark(in, input, p) : mark(out, output, p - input.order);
  }
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

bool distinct(const Partition& pattern) {
  return block_count(pattern) == static_cast<int64_t>(pattern.size());
}

void check_order(const TensorKind& input, const TensorKind& output, ClassSet set) {
  TORCH_CHECK_VALUE(input.order >= 0 && output.order >= 0,
                    "[equivariant_classes] input, output: expected orders of 0 or more, got ",
                    input.order, " -> ", output.order);
  const int64_t most = set == ClassSet::all ? kMaxClassOrder : kMaxLightOrder;
  TORCH_CHECK_VALUE(input.order <= most && output.order <= most - input.order,
                    "[equivariant_classes] order: expected k + l <= ", most, ", got ", input.order,
                    " -> ", output.order);
}

}  // namespace

std::vector<EquivariantClass> equivariant_classes(const TensorKind& input, const TensorKind& output,
                                                  ClassSet set) {
  check_order(input, output, set);
  std::vector<EquivariantClass> classes;
  std::map<Signature, size_t> orbits;
  for (Partition& partition : equivariant::all_partitions(input.order + output.order)) {
    const auto parts = equivariant::split(partition, input.order);
    if (!input.has_loops() && !distinct(parts.input)) continue;
    if (!output.has_loops() && !distinct(parts.output)) continue;
    const int64_t in = block_count(parts.input), out = block_count(parts.output);
    const int64_t key_only = std::count(parts.match.begin(), parts.match.end(), -1);
    if (set == ClassSet::light && key_only > 0) continue;
    const auto [orbit, is_new] =
        orbits.emplace(signature(partition, input, output), classes.size());
    if (is_new) classes.push_back({{}, key_only, out - (in - key_only), in - key_only});
    classes[orbit->second].members.push_back(std::move(partition));
  }
  return classes;
}

std::string partition_name(const Partition& partition, int64_t inputs) {
  const int64_t count = block_count(partition);
  if (count == 0) return "{}";
  std::vector<std::string> blocks(count, "{");
  for (int64_t p = 0; p < static_cast<int64_t>(partition.size()); ++p) {
    std::string& block = blocks[partition[p]];
    if (block.size() > 1) block += ' ';
    block += p < inputs ? 'i' : 'j';
    block += std::to_string(p < inputs ? p + 1 : p - inputs + 1);
  }
  std::string name;
  for (const std::string& block : blocks) name.append(block).push_back('}');
  return name;
}

int64_t bell_number(int64_t count) {
  TORCH_CHECK_VALUE(count >= 0 && count <= 20, "[bell_number] count: expected 0 to 20, got ",
                    count);
  // The Bell triangle: a row starts with the last entry of the previous one.
  std::vector<int64_t> row{1};
  for (int64_t n = 1; n <= count; ++n) {
    std::vector<int64_t> next{row.back()};
    for (const int64_t above : row) next.push_back(next.back() + above);
    row = std::move(next);
  }
  return row.front();
}

}  // namespace nsimplex

namespace nsimplex::equivariant {
namespace {

constexpr char kClasses[] = "equivariant_classes";

std::vector<EquivariantClass> classes(int64_t input_order, int64_t output_order,
                                      c10::string_view input_symmetry,
                                      c10::string_view output_symmetry, bool input_loops,
                                      bool output_loops, c10::string_view set) {
  return equivariant_classes(
      {input_order, parse_symmetry(input_symmetry, kClasses), input_loops},
      {output_order, parse_symmetry(output_symmetry, kClasses), output_loops},
      parse_class_set(set, kClasses));
}

// One row per partition: its class, then the blocks of its positions.
template <class... Kinds>
at::Tensor members(int64_t input_order, int64_t output_order, Kinds... kinds) {
  const std::vector<EquivariantClass> all = classes(input_order, output_order, kinds...);
  int64_t rows = 0;
  for (const EquivariantClass& each : all) rows += static_cast<int64_t>(each.members.size());
  const at::Tensor result = at::empty({rows, 1 + input_order + output_order}, at::kLong);
  int64_t* entry = result.mutable_data_ptr<int64_t>();
  for (size_t c = 0; c < all.size(); ++c) {
    for (const Partition& member : all[c].members) {
      *entry++ = static_cast<int64_t>(c);
      entry = std::copy(member.begin(), member.end(), entry);
    }
  }
  return result;
}

std::vector<std::string> names(int64_t input_order, int64_t output_order,
                               c10::string_view input_symmetry, c10::string_view output_symmetry,
                               bool input_loops, bool output_loops, c10::string_view set) {
  std::vector<std::string> result;
  for (const EquivariantClass& each : classes(input_order, output_order, input_symmetry,
                                              output_symmetry, input_loops, output_loops, set)) {
    result.push_back(partition_name(each.members.front(), input_order));
  }
  return result;
}

#define NSIMPLEX_CLASS_ARGUMENTS                                                     \
  "(int input_order, int output_order, str input_symmetry=\"ordered\", str "         \
  "output_symmetry=\"ordered\", bool input_loops=True, bool output_loops=True, str " \
  "classes=\"all\")"

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("equivariant_classes" NSIMPLEX_CLASS_ARGUMENTS " -> Tensor",
        &members<c10::string_view, c10::string_view, bool, bool, c10::string_view>);
  m.def("equivariant_class_names" NSIMPLEX_CLASS_ARGUMENTS " -> str[]", &names);
}

}  // namespace
}  // namespace nsimplex::equivariant
