// Attention over pairs of two modalities: every word attends to (picture patch, sound frame)
// tuples, with one key axis for each modality, of its own length, width and padding.
//
//   cmake -S examples/cpp -B build/examples -DCMAKE_PREFIX_PATH=PREFIX
//   cmake --build build/examples
//   build/examples/modalities
#include <ATen/Functions.h>
#include <nsimplex/layers.h>

#include <cstdio>

int main() {
  const int64_t words = 6, patches = 20, frames = 30, batch = 2;

  nsimplex::SimplicialAttentionOptions options;
  options.dim = 64;  // width of the words, and of the output
  options.heads = 4;
  options.order = 2;                            // tuples of two keys
  options.context_dims = {48, 24};              // width of a patch, width of a frame
  options.norm = nsimplex::HeadNorm::qkv;       // with the unit scale: a layer whose sensitivity
  options.scale = nsimplex::ScalePreset::unit;  // to its inputs is bounded
  nsimplex::SimplicialAttention layer(options);

  const at::Tensor text = at::randn({batch, words, 64}).requires_grad_();
  const at::Tensor picture = at::randn({batch, patches, 48});
  at::Tensor sound = at::randn({batch, frames, 24});

  // The second recording has 10 frames only: the rest is padding and never read.
  const at::Tensor lengths = at::tensor({20, 20, 30, 10}, at::kLong).view({2, batch});
  const at::Tensor out = layer->forward(text, {picture, sound}, lengths);
  out.square().sum().backward();

  at::Tensor repainted = sound.clone();
  repainted.select(0, 1).slice(0, 10) = 1e3;
  const double change =
      (layer->forward(text, {picture, repainted}, lengths) - out).abs().max().item<double>();

  std::printf("out [%ld, %ld, %ld], gradient of the text %.4f, effect of padding %g\n",
              static_cast<long>(out.size(0)), static_cast<long>(out.size(1)),
              static_cast<long>(out.size(2)), text.grad().abs().mean().item<double>(), change);
  return change == 0.0 && text.grad().isfinite().all().item<bool>() ? 0 : 1;
}
