#include "cli/causal_ball.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "causal/graphs/graph_text.h"
#include "cli/json_lines.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"

namespace nsimplex::cli {
namespace {

std::string points_csv(const CausalEmbedding& made, const at::Tensor& ball,
                       const std::vector<std::string>& names) {
  std::string text = "name,generality,radius";
  for (int64_t axis = 0; axis < ball.size(1); ++axis) text += fmt::format(",e{}", axis);
  const at::Tensor radius = made.tangents.norm(2, 1);
  const auto rows = ball.accessor<double, 2>();
  for (int64_t node = 0; node < ball.size(0); ++node) {
    text += fmt::format("\n{},{},{}", causal::text_cell(names[node]),
                        made.generality[node].item<double>(), radius[node].item<double>());
    for (int64_t axis = 0; axis < ball.size(1); ++axis) {
      text += fmt::format(",{}", rows[node][axis]);
    }
  }
  return text + "\n";
}

std::string edges_tsv(const at::Tensor& adjacency, const std::vector<std::string>& names) {
  const at::Tensor entries = (adjacency.is_sparse() ? adjacency : adjacency.to_sparse()).coalesce();
  const at::Tensor places = entries.indices().contiguous();
  const at::Tensor values = entries.values().to(at::kDouble).contiguous();
  const auto place = places.accessor<int64_t, 2>();
  const double* weight = values.const_data_ptr<double>();
  std::string text = "cause\teffect\tweight\n";
  for (int64_t edge = 0; edge < values.size(0); ++edge) {
    text += fmt::format("{}\t{}\t{}\n", causal::text_cell(names[place[0][edge]]),
                        causal::text_cell(names[place[1][edge]]), weight[edge]);
  }
  return text;
}

}  // namespace

std::string names_text(const std::vector<std::string>& names) {
  return Json(names).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string> names_in(const io::Safetensors& file, int64_t count) {
  const auto found = file.metadata.find(kNamesOfNodes);
  if (found == file.metadata.end()) return {};
  const auto names = nlohmann::json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  const auto is_text = [](const auto& name) { return name.is_string(); };
  if (!names.is_array() || std::ssize(names) != count || !std::ranges::all_of(names, is_text)) {
    return {};
  }
  return names.get<std::vector<std::string>>();
}

void write_ball(const std::string& folder, const CausalEmbedding& made,
                const std::vector<std::string>& names, const at::Tensor& adjacency) {
  const at::Tensor ball = ball_points(made.tangents);
  io::write_safetensors(folder + "/embedding.safetensors",
                        {{{"tangents", made.tangents},
                          {"hyperboloid", hyperboloid_points(made.tangents)},
                          {"ball", ball},
                          {"generality", made.generality}},
                         {{kNamesOfNodes, names_text(names)}}});
  io::write_text(folder + "/ball.csv", points_csv(made, ball, names));
  io::write_text(folder + "/edges.tsv", edges_tsv(adjacency, names));
}

}  // namespace nsimplex::cli
