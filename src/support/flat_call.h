// Connects the struct of an operator's arguments with the flat list that the dispatcher passes.

#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>
#include <c10/util/OptionalArrayRef.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

// A registered operator has one flat list of arguments. The C++ code bundles them in a call: a
// struct whose static function fields(call) refers to all of them, in the order of the schema. From
// fields() follow the function that the dispatcher calls (`flat` below), the call of an operator
// (`Operator`) and what autograd keeps of a call (`save_call`), both in operator.h.
//
// The options of an operator are a macro with one line for each option, such as
// NSIMPLEX_SEPARABLE_OPTIONS(OPTION). A line has the field's type, name and default, and the option
// as the schema spells it: OPTION(bool, causal, false, "bool causal=False").
//
// NSIMPLEX_OPTION_FIELDS(NSIMPLEX_SEPARABLE_OPTIONS) declares the fields inside a struct, and
// option_fields(self), which refers to them. NSIMPLEX_SCHEMA_OF(NSIMPLEX_SEPARABLE_OPTIONS) is
// their part of the schema. It begins with a comma, so it follows the inputs and "*".

// A list may add columns of its own to the end of its lines.

#define NSIMPLEX_DECLARE_OPTION(type, name, initial, schema, ...) type name = initial;
#define NSIMPLEX_TIE_OPTION(type, name, initial, schema, ...) std::tie(self.name),
#define NSIMPLEX_WRITE_OPTION(type, name, initial, schema, ...) ", " schema

#define NSIMPLEX_OPTION_FIELDS(LIST)                             \
  LIST(NSIMPLEX_DECLARE_OPTION)                                  \
  static auto option_fields(auto& self) {                        \
    return std::tuple_cat(LIST(NSIMPLEX_TIE_OPTION) std::tie()); \
  }

#define NSIMPLEX_SCHEMA_OF(LIST) LIST(NSIMPLEX_WRITE_OPTION)

namespace nsimplex {

using OptionalTensor = std::optional<at::Tensor>;
using OptionalTensorList = std::optional<at::TensorList>;

/// Lengths and boundaries may come as int32, as other libraries have them. Whoever reads them from
/// a call gets int64.
struct OptionalInt64 : OptionalTensor {
  OptionalInt64() = default;
  OptionalInt64(const OptionalTensor& given)  // NOLINT: stands where a tensor is given
      : OptionalTensor(given && given->scalar_type() == at::kInt ? given->to(at::kLong) : given) {}
};

/// How the dispatcher passes the value of a field.
template <class Field>
struct Passed {
  using Type = Field;
};
template <>
struct Passed<at::Tensor> {
  using Type = const at::Tensor&;
};
template <>
struct Passed<OptionalTensor> {
  using Type = const OptionalTensor&;
};
template <>
struct Passed<OptionalInt64> {
  using Type = const OptionalTensor&;
};
template <class T>
struct Passed<c10::List<T>> {
  using Type = const c10::List<T>&;
};

template <class Call>
using FieldsOf = decltype(Call::fields(std::declval<Call&>()));

/// The parameter and the result of a function of a call.
template <class Function>
struct FunctionOfCall;
template <class R, class C>
struct FunctionOfCall<R (*)(const C&)> {
  using Result = R;
  using Call = C;
};
template <auto function>
using CallOf = typename FunctionOfCall<decltype(function)>::Call;
template <auto function>
using ResultOf = typename FunctionOfCall<decltype(function)>::Result;

template <auto function, class Fields>
struct FlatFunction;
template <auto function, class... Field>
struct FlatFunction<function, std::tuple<Field&...>> {
  static ResultOf<function> run(typename Passed<Field>::Type... arguments) {
    CallOf<function> call;
    CallOf<function>::fields(call) = std::tie(arguments...);
    return function(call);
  }
};

/// A function of a call as the dispatcher knows it, with the flat list of arguments.
template <auto function>
inline constexpr auto flat = &FlatFunction<function, FieldsOf<CallOf<function>>>::run;

template <class Result, class Fields>
struct FlatSignature;
template <class Result, class... Field>
struct FlatSignature<Result, std::tuple<Field&...>> {
  using Type = Result(typename Passed<Field>::Type...);
};

/// visit(tensor) for each tensor of a tuple of tensors, lists and optional tensors, in order. An
/// absent tensor is visited as an undefined one.
template <class Visit, class... T>
void for_each_tensor(const std::tuple<T...>& tensors, Visit&& visit) {
  const auto one = [&](const auto& element) {
    using Element = std::decay_t<decltype(element)>;
    if constexpr (std::is_same_v<Element, at::Tensor>) {
      visit(element);
    } else if constexpr (std::is_same_v<Element, OptionalTensor>) {
      visit(element ? *element : at::Tensor());
    } else {
      for (const at::Tensor& tensor : element) visit(tensor);
    }
  };
  std::apply([&](const auto&... element) { (one(element), ...); }, tensors);
}

/// Whether one of the tensors that are present satisfies the predicate.
template <class Predicate, class... T>
bool any_tensor_of(const std::tuple<T...>& tensors, Predicate&& predicate) {
  bool any = false;
  for_each_tensor(tensors, [&](const at::Tensor& tensor) {
    any = any || (tensor.defined() && predicate(tensor));
  });
  return any;
}

}  // namespace nsimplex
