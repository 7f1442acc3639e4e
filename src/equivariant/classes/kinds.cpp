#include "equivariant/classes/kinds.h"

#include <c10/util/Exception.h>

#include <array>
#include <string>

namespace nsimplex::equivariant {
namespace {

// Enumerators 0, 1, .. of each option.
constexpr std::array kSymmetries{"ordered", "loop_free", "undirected"};
constexpr std::array kClassSets{"all", "light"};
constexpr std::array kPoolings{"sum", "mean"};
constexpr std::array kForms{"softmax", "kernel", "decoupled"};
constexpr std::array kKeys{"paper", "node"};
constexpr std::array kFeatures{"relu", "exponential"};

template <class Enum, size_t count>
Enum parse(const std::array<const char*, count>& names, std::string_view text, const char* name,
           const char* argument) {
  std::string known;
  for (size_t i = 0; i < count; ++i) {
    if (text == names[i]) return static_cast<Enum>(i);
    known += (i == 0 ? "" : ", ") + std::string(names[i]);
  }
  TORCH_CHECK_VALUE(false, "[", name, "] ", argument, ": expected one of ", known, ", got ", text);
}

}  // namespace

ClassSet parse_class_set(std::string_view text, const char* name) {
  return parse<ClassSet>(kClassSets, text, name, "classes");
}
Pooling parse_pooling(std::string_view text, const char* name) {
  return parse<Pooling>(kPoolings, text, name, "pooling");
}
AttentionForm parse_attention_form(std::string_view text, const char* name) {
  return parse<AttentionForm>(kForms, text, name, "form");
}
AttentionKeys parse_attention_keys(std::string_view text, const char* name) {
  return parse<AttentionKeys>(kKeys, text, name, "keys");
}
FeatureMap parse_feature_map(std::string_view text, const char* name) {
  return parse<FeatureMap>(kFeatures, text, name, "features");
}

const char* to_string(Symmetry symmetry) { return kSymmetries[static_cast<size_t>(symmetry)]; }
const char* to_string(ClassSet set) { return kClassSets[static_cast<size_t>(set)]; }
const char* to_string(Pooling pooling) { return kPoolings[static_cast<size_t>(pooling)]; }
const char* to_string(AttentionForm form) { return kForms[static_cast<size_t>(form)]; }
const char* to_string(FeatureMap map) { return kFeatures[static_cast<size_t>(map)]; }

}  // namespace nsimplex::equivariant
