// Runs a layer that AOTInductor compiled, without Python, and prints the sum of its squared outputs:
//   package FILE.pt2
#include <ATen/Functions.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <cstdio>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const c10::InferenceMode mode;
  torch::inductor::AOTIModelPackageLoader layer(arguments[1]);
  const at::Tensor tokens = at::linspace(-1, 1, 2 * 100 * 64).view({2, 100, 64});
  std::printf("%.9g\n", layer.run({tokens}).front().square().sum().item<double>());
}
