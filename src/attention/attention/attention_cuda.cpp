// The operator `attention` on an NVIDIA GPU by kernels that were compiled ahead of time, or by the
// reference.
//
// It is off unless the environment variable NSIMPLEX_CUBINS is set: "on" uses the file beside the
// library, and any other value is a path. The reference computes calls that the compiled kernels do
// not support.

#include <ATen/ops/empty.h>
#include <dlfcn.h>
#include <torch/library.h>

#include <cstdlib>
#include <filesystem>

#include "attention/attention/attention_cubins.h"
#include "attention/common/attention_arguments.h"
#include "attention/common/attention_augment.h"
#include "support/error.h"
#include "support/log.h"

namespace nsimplex::dense {
namespace {

constexpr const char* kVariable = "NSIMPLEX_CUBINS";
constexpr const char* kFileName = "nsimplex_cubins.zip";

bool compiled_kernels_wanted() {
  const char* const value = std::getenv(kVariable);
  const std::string_view text = value == nullptr ? "" : value;
  return !text.empty() && text != "off" && text != "0";
}

std::string path_of_file() {
  const std::string value = std::getenv(kVariable);
  if (value != "on" && value != "1") return value;
  static const char here = 0;
  Dl_info library{};
  if (dladdr(&here, &library) == 0 || library.dli_fname == nullptr) return kFileName;
  return std::filesystem::path(library.dli_fname).parent_path() / kFileName;
}

cubins::File& compiled_kernels() {
  static const std::unique_ptr<cubins::File> file = [] {
    try {
      return std::make_unique<cubins::File>(path_of_file());
    } catch (const InputError& error) {
      C10_THROW_ERROR(ValueError, c10::str("[attention] ", kVariable, ": ", error.what()));
    }
  }();
  return *file;
}

cubins::PlainCall plain_call(const Call& call) {
  if (const char* const name = unhandled(call.options, kCubins)) {
    throw cubins::Unserved(c10::str("the compiled kernels do not take the option ", name));
  }
  const Settings settings = settings_of(call);
  cubins::PlainCall plain{call.query, call.keys.vec(),      call.values.vec(),    {},
                          {},         settings.scale.logit, settings.scale.output};
  for (int m = 0; m < settings.order; ++m) {
    const kernels::Visibility& visible = settings.visible[m];
    plain.left.push_back(visible.left);
    plain.right.push_back(visible.causal ? 0 : visible.right);
  }
  return plain;
}

cubins::Launcher launcher() {
  const cubins::Driver* const driver = cubins::Driver::find();
  if (driver == nullptr) throw cubins::Unserved("CUDA's driver, libcuda.so.1, was not found");
  return {compiled_kernels(), *driver};
}

Output cuda_forward(const Call& call) {
  check(call);
  if (augmented(call)) return augmented_forward(call, &cuda_forward);
  try {
    const std::vector<at::Tensor> results = launcher().forward(plain_call(call));
    return {results[0], results[1]};
  } catch (const cubins::Unserved& reason) {
    warn_fallback("attention", reason.what());
    return reference_forward(call);
  }
}

Gradients cuda_backward(const BackwardCall& backward) {
  check(backward);
  const Call& call = backward.forward;
  if (augmented(call)) return augmented_backward(backward, &cuda_backward);
  try {
    const size_t order = call.keys.size();
    const cubins::PlainGrad grad{backward.out, backward.lse, backward.grad_out,
                                 backward.grad_lse.value_or(at::Tensor())};
    std::vector<at::Tensor> results = launcher().backward(plain_call(call), grad);
    const at::Tensor none = at::empty({0}, call.query.options());
    for (size_t n = 0; n < results.size(); ++n) {
      if (!backward.wanted[n]) results[n] = none;
    }
    const auto list = [&](size_t begin) {
      return std::vector<at::Tensor>(results.begin() + begin, results.begin() + begin + order);
    };
    return {results[0], list(1), list(1 + order), none, none};
  } catch (const cubins::Unserved& reason) {
    warn_fallback("attention_backward", reason.what());
    return reference_backward(backward);
  }
}

TORCH_LIBRARY_IMPL(nsimplex, CUDA, m) {
  if (!compiled_kernels_wanted()) return;
  m.impl("attention", TORCH_FN(flat<&cuda_forward>));
  m.impl("attention_backward", TORCH_FN(flat<&cuda_backward>));
}

}  // namespace
}  // namespace nsimplex::dense
