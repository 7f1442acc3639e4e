// Names of the enums of layers and models, as commands and files spell them.

#pragma once

#include <nsimplex/feature_transformer.h>
#include <nsimplex/language_model.h>

#include "support/names.h"

namespace nsimplex {

template <>
inline constexpr Names<HeadNorm, 3> kNames<HeadNorm>{
    {{"none", HeadNorm::none}, {"qk", HeadNorm::qk}, {"qkv", HeadNorm::qkv}}};
template <>
inline constexpr Names<ScalePreset, 2> kNames<ScalePreset>{
    {{"standard", ScalePreset::standard}, {"unit", ScalePreset::unit}}};
template <>
inline constexpr Names<Activation, 2> kNames<Activation>{
    {{"swiglu", Activation::swiglu}, {"gelu", Activation::gelu}}};

template <>
inline constexpr Names<Sparsity, 8> kNames<Sparsity>{
    {{"window", Sparsity::window},
     {"topk", Sparsity::topk},
     {"path", Sparsity::path},
     {"linear", Sparsity::linear},
     {"window+sinks", Sparsity::window_sinks},
     {"window+topk", Sparsity::window_topk},
     {"sinks+topk", Sparsity::sinks_topk},
     {"window+sinks+topk", Sparsity::window_sinks_topk}}};
template <>
inline constexpr Names<IndexSource, 2> kNames<IndexSource>{
    {{"reuse", IndexSource::reuse}, {"light", IndexSource::light}}};

template <>
inline constexpr Names<FeatureBackbone, 3> kNames<FeatureBackbone>{
    {{"softmax", FeatureBackbone::softmax},
     {"performer", FeatureBackbone::performer},
     {"simplicial", FeatureBackbone::simplicial}}};
template <>
inline constexpr Names<FeatureValues, 4> kNames<FeatureValues>{
    {{"bins", FeatureValues::bins},
     {"linear", FeatureValues::linear},
     {"periodic", FeatureValues::periodic},
     {"general", FeatureValues::general}}};
template <>
inline constexpr Names<FeatureEncoding, 6> kNames<FeatureEncoding>{
    {{"none", FeatureEncoding::none},
     {"sinusoidal", FeatureEncoding::sinusoidal},
     {"learned", FeatureEncoding::learned},
     {"additive", FeatureEncoding::additive},
     {"relative", FeatureEncoding::relative},
     {"rotary", FeatureEncoding::rotary}}};
template <>
inline constexpr Names<FeatureAggregate, 3> kNames<FeatureAggregate>{
    {{"mean", FeatureAggregate::mean},
     {"max", FeatureAggregate::max},
     {"cls", FeatureAggregate::cls}}};

}  // namespace nsimplex
