// Names of the options of equivariant layers, and their parsing.

#pragma once

#include <nsimplex/equivariant_attention.h>
#include <nsimplex/equivariant_linear.h>

#include <string_view>

#include "graph/graph_view.h"
#include "support/names.h"

namespace nsimplex {

template <>
inline constexpr Names<ClassSet, 2> kNames<ClassSet>{
    {{"all", ClassSet::all}, {"light", ClassSet::light}}};
template <>
inline constexpr Names<Pooling, 2> kNames<Pooling>{
    {{"sum", Pooling::sum}, {"mean", Pooling::mean}}};
template <>
inline constexpr Names<AttentionForm, 3> kNames<AttentionForm>{
    {{"softmax", AttentionForm::softmax},
     {"kernel", AttentionForm::kernel},
     {"decoupled", AttentionForm::decoupled}}};
template <>
inline constexpr Names<AttentionKeys, 2> kNames<AttentionKeys>{
    {{"paper", AttentionKeys::paper}, {"node", AttentionKeys::node}}};
template <>
inline constexpr Names<FeatureMap, 2> kNames<FeatureMap>{
    {{"relu", FeatureMap::relu}, {"exponential", FeatureMap::exponential}}};

}  // namespace nsimplex

// The options as the operators' schemas spell them. Errors begin with `name`.

namespace nsimplex::equivariant {

using graph::parse_symmetry;
ClassSet parse_class_set(std::string_view text, const char* name);
Pooling parse_pooling(std::string_view text, const char* name);
AttentionForm parse_attention_form(std::string_view text, const char* name);
AttentionKeys parse_attention_keys(std::string_view text, const char* name);
FeatureMap parse_feature_map(std::string_view text, const char* name);

}  // namespace nsimplex::equivariant
