// The command `causal encode`: the rotary angles of an embedding.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nsimplex/causal_embedding.h>

#include "causal/graph/graph_text.h"
#include "cli/causal_embed_command.h"
#include "cli/causal_table.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "io/npy.h"
#include "io/output_file.h"
#include "io/safetensors.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

struct EncodeOptions : CommonOptions {
  std::string embedding, format = "safetensors";
  CausalAnglesOptions angles = {};
};

struct Ball {
  at::Tensor points;
  std::vector<std::string> names;  // empty if the file has none
};

Ball read_ball(const std::string& path) {
  const io::Safetensors file = io::read_safetensors(path);
  const at::Tensor* ball = file.find("ball");
  if (ball == nullptr) {
    throw InputError(
        fmt::format("cannot read {}: expected a tensor \"ball\" as causal embed "
                    "writes it",
                    path));
  }
  return {ball->to(at::kDouble, /*non_blocking=*/false, /*copy=*/true),
          names_in(file, ball->dim() == 2 ? ball->size(0) : 0)};
}

// Names of all tokens: those before the features, then these.
std::vector<std::string> token_names(const std::vector<std::string>& features, int64_t tokens) {
  const int64_t leading = tokens - std::ssize(features);
  std::vector<std::string> names;
  for (int64_t at = 0; at < leading; ++at) names.push_back(fmt::format("<leading{}>", at + 1));
  names.insert(names.end(), features.begin(), features.end());
  return names;
}

// One row per token: its name, then its angles head by head.
std::string csv(const at::Tensor& angles, const std::vector<std::string>& tokens) {
  std::string text;
  const int64_t heads = angles.dim() == 3 ? angles.size(1) : 1, planes = angles.size(-1);
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t plane = 0; plane < planes; ++plane) {
      text += angles.dim() == 3 ? fmt::format(",head{}_plane{}", head, plane)
                                : fmt::format(",plane{}", plane);
    }
  }
  text += '\n';
  const at::Tensor rows = angles.flatten(1).contiguous();
  const auto numbers = rows.accessor<double, 2>();
  for (int64_t token = 0; token < rows.size(0); ++token) {
    text += causal::text_cell(tokens[static_cast<size_t>(token)]);
    for (int64_t column = 0; column < rows.size(1); ++column) {
      text += fmt::format(",{}", numbers[token][column]);
    }
    text += '\n';
  }
  return text;
}

int run_encode(const EncodeOptions& o) {
  if (o.out.empty()) throw InputError("--out: expected a folder for the table of angles");
  const Ball ball = read_ball(o.embedding);
  at::Tensor angles;
  try {
    angles = causal_angles(ball.points, o.angles).contiguous();
  } catch (const c10::ValueError& error) {
    throw InputError(error.what_without_backtrace());
  }
  warn_of_blank("angles", causal_embedding_warning(ball_tangents(ball.points)));
  RunLog log(o);
  const std::string path = fmt::format("{}/angles.{}", o.out, o.format);
  const std::vector<std::string> tokens = token_names(
      ball.names.empty() ? column_names(ball.points.size(0)) : ball.names, angles.size(0));
  if (o.format == "safetensors") {
    io::write_safetensors(path, {{{"angles", angles}}, {{kNamesOfNodes, names_text(tokens)}}});
  } else if (o.format == "csv") {
    io::write_text(path, csv(angles, tokens));
  } else {
    io::write_text(
        path, io::npy_bytes({angles.const_data_ptr<double>(), static_cast<size_t>(angles.numel())},
                            angles.sizes()));
  }
  const double largest = angles.numel() == 0 ? 0.0 : angles.abs().max().item<double>();
  log.write("encode", {{"task", "encode"},
                       {"tokens", angles.size(0)},
                       {"heads", o.angles.heads},
                       {"planes", angles.size(-1)},
                       {"largest_angle", largest},
                       {"table", path}});
  if (o.json) return 0;
  print(fmt::format("angles {}, at most {:.4f}: {}\n", c10::str(angles.sizes()), largest, path));
  return 0;
}

}  // namespace

void add_causal_encode(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<EncodeOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "encode",
       .summary = "Convert an embedding into the angles of a rotary encoding",
       .examples = "nsimplex causal encode runs/ball/embedding.safetensors --out runs/angles\n"
                   "nsimplex causal encode runs/ball/embedding.safetensors --heads 4 "
                   "--format npy --out runs/angles",
       .acts = {.seed = false},
       .files = {"angles.csv", "angles.npy", "angles.safetensors"}},
      options, run_encode);
  add_argument(command, "EMBEDDING", options->embedding,
               "The embedding.safetensors that causal embed --out writes");
  CausalAnglesOptions& angles = options->angles;
  const auto add = option_adder(command, "Angles");
  add("--heads", angles.heads,
      "Heads that take consecutive coordinates; 0: one table that all heads share");
  add("--angle", angles.scale, "Angle in radians for a coordinate of 1");
  command
      .add_flag("--by-dimension", angles.by_dimension,
                "Multiply --angle by sqrt(dimension), so that the angles keep their size")
      ->group("Angles");
  add("--leading", angles.leading, "Tokens before the features, which are not rotated");
  add("--format", options->format, "Format of the table: safetensors, npy or csv")
      ->check(one_of({"safetensors", "npy", "csv"}));
}

}  // namespace nsimplex::cli
