#include "attention/common/kernel_phases.h"

#include <sstream>

#include "kernels/common/tile_table.h"
#include "kernels/cpu/shared/simd.h"
#include "support/log.h"

namespace nsimplex::dense {

void log_plan(std::string_view operation, int order, const kernels::DensePlan& plan,
              const KernelMemory& memory) {
  static const bool wanted = environment_flag("NSIMPLEX_PLAN");
  if (!wanted) return;
  std::ostringstream line;
  const auto list = [&line](std::string_view name, const auto* first, int count) {
    line << " " << name << "=";
    for (int i = 0; i < count; ++i) line << (i > 0 ? "," : "") << first[i];
  };
  line << "plan: " << operation;
  list("axes", plan.axis, order);
  line << " inner=" << plan.inner_axis << " rows=" << kernels::kBlockRows
       << " panel=" << kernels::kPanelKeys << " blocks=" << plan.blocks << " splits=" << plan.splits
       << " fused=" << plan.fused;
  list("tasks", plan.tasks, plan.phases);
  line << " workspace=" << memory.workspace_bytes << " scratch=" << memory.workers << "x"
       << memory.scratch_bytes << " simd=" << kernels::simd_level();
  log_line(line.str());
}

}  // namespace nsimplex::dense
