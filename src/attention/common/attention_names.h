// Names of the enums of attention options, as commands and schemas spell them.

#pragma once

#include <nsimplex/attention.h>
#include <nsimplex/routing.h>
#include <nsimplex/sparse_attention.h>

#include "support/names.h"

namespace nsimplex {

template <>
inline constexpr Names<Form, 2> kNames<Form>{
    {{"product", Form::product}, {"determinant", Form::determinant}}};
template <>
inline constexpr Names<Reduce, 3> kNames<Reduce>{
    {{"product", Reduce::product}, {"sum", Reduce::sum}, {"mean", Reduce::mean}}};
template <>
inline constexpr Names<Normalizer, 4> kNames<Normalizer>{
    {{"softmax", Normalizer::softmax},
     {"softmax_sink", Normalizer::softmax_sink},
     {"sigmoid", Normalizer::sigmoid},
     {"relu", Normalizer::relu}}};
template <>
inline constexpr Names<Distinct, 3> kNames<Distinct>{
    {{"none", Distinct::none}, {"axes", Distinct::axes}, {"with_query", Distinct::with_query}}};

template <>
inline constexpr Names<TuplePattern, 3> kNames<TuplePattern>{{{"list", TuplePattern::list},
                                                              {"product", TuplePattern::product},
                                                              {"path", TuplePattern::path}}};
template <>
inline constexpr Names<TupleReduce, 5> kNames<TupleReduce>{
    {{"product", TupleReduce::product},
     {"sum", TupleReduce::sum},
     {"mean", TupleReduce::mean},
     {"mlp", TupleReduce::mlp},
     {"mlp_symmetric", TupleReduce::mlp_symmetric}}};

template <>
inline constexpr Names<IndexScores, 2> kNames<IndexScores>{
    {{"relu", IndexScores::relu}, {"softmax", IndexScores::softmax}}};

}  // namespace nsimplex
