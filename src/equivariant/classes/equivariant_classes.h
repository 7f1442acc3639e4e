#pragma once

#include <nsimplex/equivariant_attention.h>
#include <nsimplex/equivariant_linear.h>

#include <string_view>

#include "graph/graph_view.h"

// Options as the operators' schemas spell them. `name` stands in front of an error.

namespace nsimplex::equivariant {

using graph::parse_symmetry;
ClassSet parse_class_set(std::string_view text, const char* name);
Pooling parse_pooling(std::string_view text, const char* name);
AttentionForm parse_attention_form(std::string_view text, const char* name);
AttentionKeys parse_attention_keys(std::string_view text, const char* name);
FeatureMap parse_feature_map(std::string_view text, const char* name);

const char* to_string(Symmetry symmetry);
const char* to_string(ClassSet set);
const char* to_string(Pooling pooling);
const char* to_string(AttentionForm form);
const char* to_string(FeatureMap map);

}  // namespace nsimplex::equivariant
