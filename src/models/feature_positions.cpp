#include <ATen/ATen.h>
#include <nsimplex/feature_transformer.h>

namespace nsimplex {

int64_t feature_planes(const FeatureTransformerOptions& options) {
  const int64_t width = options.dim / options.heads;
  if (options.backbone != FeatureBackbone::simplicial) return width / 2;
  return (options.order + 1) / 2 * (width / (options.order + 1));
}

FeaturePositionsImpl::FeaturePositionsImpl(const FeatureTransformerOptions& options)
    : options_(options) {
  const bool rotary = options.encoding == FeatureEncoding::rotary;
  if (!rotary && options.encoding != FeatureEncoding::additive) return;
  table_ = register_buffer(
      "table", rotary ? at::zeros({options.features, options.heads, feature_planes(options)})
                      : at::zeros({options.features, options.dim}));
  if (options.learned_scale) scale_ = register_parameter("scale", at::ones({options.heads}));
}

void FeaturePositionsImpl::reset_parameters() {
  const at::NoGradGuard no_grad;
  if (scale_.defined()) scale_.fill_(1.0);
}

void FeaturePositionsImpl::set_table(const at::Tensor& table) {
  TORCH_CHECK_VALUE(table_.defined(),
                    "[FeatureTransformer] table: only of encodings rotary and additive");
  at::Tensor shaped = table;
  if (table_.dim() == 3 && table.dim() == 2) {
    shaped = table.unsqueeze(1).expand({-1, table_.size(1), -1});
  }
  TORCH_CHECK_VALUE(at::isFloatingType(table.scalar_type()) && shaped.sizes() == table_.sizes(),
                    "[FeatureTransformer] table: expected floating numbers of shape ",
                    table_.sizes(), table_.dim() == 3 ? " or the same without heads" : "", ", got ",
                    table.scalar_type(), " of shape ", table.sizes());
  const at::NoGradGuard no_grad;
  table_.copy_(shaped);
}

at::Tensor FeaturePositionsImpl::angles() const {
  const at::Tensor angles = scale_.defined() ? table_ * scale_.unsqueeze(1) : table_;
  return at::constant_pad_nd(angles, {0, 0, 0, 0, 1, 0});
}

}  // namespace nsimplex
