// The host side of the compiled GPU kernels as operators that tests/python/gpu calls with tensors
// on the CPU and a driver of its own in place of libcuda.so.1.

#include <torch/library.h>

#include "attention/attention/attention_cubins.h"
#include "support/error.h"

namespace nsimplex::cubins {
namespace {

using at::Tensor;

PlainCall call_of(const Tensor& query, const std::vector<Tensor>& keys,
                  const std::vector<Tensor>& values, at::IntArrayRef window,
                  at::ArrayRef<double> scales) {
  PlainCall call{query, keys, values, {}, {}, scales[0], scales[1]};
  for (size_t m = 0; m < keys.size(); ++m) {
    call.left.push_back(window[2 * m]);
    call.right.push_back(window[2 * m + 1]);
  }
  return call;
}

Launcher launcher_of(const std::string& path) {
  static std::map<std::string, std::unique_ptr<File>> files;
  std::unique_ptr<File>& file = files[path];
  if (!file) file = std::make_unique<File>(path);
  const Driver* const driver = Driver::find();
  TORCH_CHECK(driver != nullptr, "no driver");
  return {*file, *driver};
}

std::vector<Tensor> forward(const std::string& path, const Tensor& query,
                            const std::vector<Tensor>& keys, const std::vector<Tensor>& values,
                            const std::vector<int64_t>& window, const std::vector<double>& scales) {
  return launcher_of(path).forward(call_of(query, keys, values, window, scales));
}

std::vector<Tensor> backward(const std::string& path, const Tensor& query,
                             const std::vector<Tensor>& keys, const std::vector<Tensor>& values,
                             const Tensor& out, const Tensor& lse, const Tensor& grad_out,
                             const std::optional<Tensor>& grad_lse,
                             const std::vector<int64_t>& window,
                             const std::vector<double>& scales) {
  const PlainGrad grad{out, lse, grad_out, grad_lse.value_or(Tensor())};
  return launcher_of(path).backward(call_of(query, keys, values, window, scales), grad);
}

/// How many kernels the file has.
int64_t count(const std::string& path) { return static_cast<int64_t>(File(path).kernels().size()); }

TORCH_LIBRARY(nsimplex_cubins_probe, m) {
  m.def(
      "forward(str path, Tensor query, Tensor[] keys, Tensor[] values, int[] window, "
      "float[] scales) -> Tensor[]");
  m.def(
      "backward(str path, Tensor query, Tensor[] keys, Tensor[] values, Tensor out, Tensor lse, "
      "Tensor grad_out, Tensor? grad_lse, int[] window, float[] scales) -> Tensor[]");
  m.def("count(str path) -> int", TORCH_FN(count));
}

TORCH_LIBRARY_IMPL(nsimplex_cubins_probe, CPU, m) {
  m.impl("forward", forward);
  m.impl("backward", backward);
}

}  // namespace
}  // namespace nsimplex::cubins
