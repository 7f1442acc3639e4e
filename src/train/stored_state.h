// Declares the checks of files that trainings read: headers, tensors, states of generators.

#pragma once

#include <ATen/core/Generator.h>
#include <c10/util/Exception.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"
#include "support/error.h"

namespace nsimplex::training {

/// The message about a file: "cannot read PATH: WHY".
std::string unreadable(const std::string& path, const std::string& why);

/// The result of `make`. An error is one of the file `path`, whose contents cause it.
template <class Make>
auto of_file(const std::string& path, Make&& make) {
  try {
    return make();
  } catch (const InputError& error) {
    if (std::string_view(error.what()).starts_with("cannot read ")) throw;
    throw InputError(unreadable(path, error.what()));
  } catch (const c10::Error& error) {
    throw InputError(unreadable(path, error.what_without_backtrace()));
  }
}

/// The result of `make` from the JSON in the field `name` of a file's header.
template <class Make>
auto from_header(const io::Safetensors& file, const std::string& path, const std::string& name,
                 Make&& make) {
  return of_file(path, [&] {
    try {
      return make(nlohmann::json::parse(file.metadata.at(name)));
    } catch (const std::out_of_range&) {
      throw InputError("the header has no " + name);
    } catch (const nlohmann::json::exception& error) {
      throw InputError("the header's " + name + " is damaged: " + error.what());
    }
  });
}

/// Throws InputError unless a value of a header says the same as `own`, the JSON of what was made
/// from it. Otherwise a number of another type was rounded, or a field was left out. `name` is the
/// value's in messages.
void require_same(const nlohmann::json& given, const nlohmann::json& own, const std::string& name);

/// Throws InputError that names a tensor with which no training can continue: a number that is not
/// finite, or a negative count, square or time.
void require_usable(const std::vector<io::NamedTensor>& tensors);

/// Removes the tensors whose names begin with the prefix, and returns them without it.
std::vector<io::NamedTensor> take_under(std::vector<io::NamedTensor>& tensors,
                                        std::string_view prefix);

/// Removes the tensor of that name, a list of that type, and returns it. Throws InputError without
/// one.
at::Tensor take_list(std::vector<io::NamedTensor>& tensors, std::string_view name,
                     at::ScalarType type);

/// Throws InputError that names the first of the tensors that nothing has taken.
void require_all_taken(const std::vector<io::NamedTensor>& left);

/// Copies `values` into the tensors of the same names. Throws InputError if names, shapes or types
/// differ; `origin` is the name of the values' file.
void copy_into(const std::vector<io::NamedTensor>& tensors,
               const std::vector<io::NamedTensor>& values, const std::string& origin);

/// Continues the random numbers of a generator. Throws InputError if the state is damaged; torch
/// would read numbers beyond the state's end for some.
void set_state(at::Generator generator, const at::Tensor& state, const std::string& name);

}  // namespace nsimplex::training
