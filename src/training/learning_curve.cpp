#include "training/learning_curve.h"

#include <algorithm>

namespace nsimplex::training {

std::vector<CurvePoint> smooth(std::span<const CurvePoint> curve, int64_t reach) {
  std::vector<CurvePoint> result(curve.begin(), curve.end());
  const int64_t count = static_cast<int64_t>(curve.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t span = std::min({reach, i, count - 1 - i});
    double sum = 0.0;
    for (int64_t j = i - span; j <= i + span; ++j) sum += curve[j].loss;
    result[i].loss = sum / static_cast<double>(2 * span + 1);
  }
  return result;
}

std::optional<double> first_step_at(std::span<const CurvePoint> curve, double loss) {
  for (size_t i = 0; i < curve.size(); ++i) {
    if (curve[i].loss > loss) continue;
    const double step = static_cast<double>(curve[i].step);
    if (i == 0) return step;
    const CurvePoint& before = curve[i - 1];  // above the loss
    const double part = (before.loss - loss) / (before.loss - curve[i].loss);
    return static_cast<double>(before.step) + part * (step - static_cast<double>(before.step));
  }
  return std::nullopt;
}

std::vector<SpeedUpPoint> speed_up(std::span<const CurvePoint> x, std::span<const CurvePoint> y) {
  std::vector<SpeedUpPoint> result;
  for (const CurvePoint& point : x) {
    if (y.empty() || point.step == 0 || point.loss > y.front().loss) continue;
    const auto step = first_step_at(y, point.loss);
    if (step) result.push_back({point.step, *step / static_cast<double>(point.step) - 1.0});
  }
  return result;
}

}  // namespace nsimplex::training
