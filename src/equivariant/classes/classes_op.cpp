// The classes for callers that are not C++: operators without tensors among their arguments.

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <torch/library.h>

#include "equivariant/classes/kinds.h"

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

// One row a partition: the class it belongs to, then the blocks of its positions.
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
