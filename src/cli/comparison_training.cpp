#include "cli/comparison_training.h"

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/progress.h"

namespace nsimplex::cli {

std::vector<training::ArmResult> train_arms_shown(
    const std::string& label, const std::vector<training::Arm>& arms,
    const training::TrainingOptions& training, const training::Corpus& corpus,
    const CommonOptions& options, const std::function<void(const training::ArmPoint&)>& on_point) {
  int64_t total = 0;
  for (const training::Arm& arm : arms) total += arm.steps > 0 ? arm.steps : training.steps;
  ProgressBar bar(label, total, options.json);
  training::ComparisonEvents events;
  events.point = on_point;
  events.step = [&](int64_t done, double loss) {
    interrupt::check();
    bar.update(done, fmt::format("loss {:.3f}", loss));
  };
  return training::train_arms(arms, training, corpus, options.torch_device(), events);
}

}  // namespace nsimplex::cli
