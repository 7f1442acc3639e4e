// The function orient_by_noise(), and its operator for Python.

#include <ATen/ATen.h>
#include <nsimplex/causal.h>
#include <torch/library.h>

#include <string>
#include <tuple>

#include "causal/structure/fit_arguments.h"
#include "causal/structure/noise_directions.h"
#include "causal/structure/noise_input.h"
#include "causal/tensors.h"
#include "support/interruptible.h"

namespace nsimplex {

NoiseDirections orient_by_noise(const at::Tensor& table, const at::Tensor& graph,
                                const NoiseDirectionsOptions& options) {
  const at::Tensor values = causal::checked_matrix("[orient_by_noise] table", table);
  const at::Tensor edges = causal::checked_matrix("[orient_by_noise] graph", graph);
  return as_function("orient_by_noise", [&]() -> NoiseDirections {
    causal::TurnedGraph found =
        causal::turned_by_noise(causal::view_matrix(values), causal::view_matrix(edges),
                                options.level, options.constraints, [&] {
                                  if (options.checkpoint) options.checkpoint();
                                  return !(options.stop && options.stop());
                                });
    return {causal::to_tensor(std::move(found.adjacency)), causal::edge_table(found.turned),
            found.gain, found.p_value, found.interrupted};
  });
}

namespace causal {
namespace {

std::tuple<at::Tensor, at::Tensor, double, double> oriented(const at::Tensor& table,
                                                            const at::Tensor& graph, double level,
                                                            const at::Tensor& forbidden,
                                                            const at::Tensor& required,
                                                            at::IntArrayRef tiers) {
  const Interruptible interruptible;
  const NoiseDirections found = orient_by_noise(
      table, graph,
      {.level = level,
       .constraints = parse_constraints("orient_by_noise", forbidden, required, tiers),
       .checkpoint = [&] { interruptible.check(); }});
  return {found.adjacency, found.turned, found.gain, found.p_value};
}

// What is expected in place of which argument and value; empty if nothing is refused.
std::tuple<std::string, std::string, std::string> refused(bool nonlinear, bool groups, bool targets,
                                                          bool kinds, bool likelihood,
                                                          bool confidence) {
  const auto found = refused_by_noise({nonlinear, groups, targets, kinds, likelihood, confidence});
  if (!found) return {};
  return {found->expected, found->argument, found->value};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "causal_orient_by_noise(Tensor table, Tensor graph, float level, Tensor forbidden, Tensor "
      "required, int[] tiers) -> (Tensor, Tensor, float, float)",
      TORCH_FN(oriented));
  m.def(
      "causal_refused_by_noise(bool nonlinear, bool groups, bool targets, bool kinds, bool "
      "likelihood, bool confidence) -> (str, str, str)",
      TORCH_FN(refused));
}

}  // namespace
}  // namespace causal
}  // namespace nsimplex
