#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nsimplex/causal_embedding.h>

#include <algorithm>

#include "causal/embedding/names.h"
#include "causal/embedding/neighbours.h"
#include "causal/graphs/graph_file.h"
#include "cli/causal.h"
#include "cli/causal_ball.h"
#include "cli/causal_files.h"
#include "cli/embedding_flags.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/run_log.h"
#include "cli/text_flags.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

struct EmbedOptions : CommonOptions {
  std::string graph, pairs = "auto";
  TextFlags text;
  EmbeddingFlags embedding;
};

// Whether a list has more kinds than classes: more nodes share a second node than a first one.
bool gathers(const causal::GraphFile& file) {
  std::vector<int64_t> first(static_cast<size_t>(file.nodes)), second(first);
  for (const auto& edge : file.edges) {
    ++first[edge.cause];
    ++second[edge.effect];
  }
  return *std::ranges::max_element(second) > *std::ranges::max_element(first);
}

bool is_hierarchy(const causal::GraphFile& file) {
  std::vector<Eigen::Triplet<double, int64_t>> edges;
  for (const auto& edge : file.edges) edges.emplace_back(edge.cause, edge.effect, 1.0);
  causal::SparseGraph graph(file.nodes, file.nodes);
  graph.setFromTriplets(edges.begin(), edges.end());
  return causal::is_hierarchy(graph);
}

// What a list of edges names first, and what is said of it where that was guessed.
struct FirstNamed {
  bool effect = false;
  std::string guess;
};

// Without --pairs and a header only a hierarchy may name the effect first: these are written "kind,
// of what".
FirstNamed first_named(const EmbedOptions& o, const causal::GraphFile& file) {
  if (o.pairs != "auto") return {o.pairs == "effect-cause", ""};
  if (file.complete || file.edges.empty() || file.roles || !is_hierarchy(file)) return {};
  const bool effect = gathers(file);
  const auto name = [&](int64_t node) {
    return quoted_name(file.names.empty() ? std::to_string(node)
                                          : file.names[static_cast<size_t>(node)]);
  };
  const auto& edge = file.edges.front();
  return {effect, fmt::format("{}: no header and a hierarchy, so its first column is taken for the "
                              "{}: {} is the {} of {}; --pairs {} says otherwise\n",
                              o.graph, effect ? "effect" : "cause", name(edge.cause),
                              effect ? "effect" : "cause", name(edge.effect),
                              effect ? "cause-effect" : "effect-cause")};
}

at::Tensor adjacency_of(const causal::GraphFile& file, bool effect_first) {
  const auto count = static_cast<int64_t>(file.edges.size());
  at::Tensor places = at::empty({2, count}, at::kLong), weights = at::empty({count}, at::kDouble);
  int64_t* place = places.mutable_data_ptr<int64_t>();
  double* weight = weights.mutable_data_ptr<double>();
  for (int64_t k = 0; k < count; ++k) {
    const auto& edge = file.edges[k];
    place[k] = effect_first ? edge.effect : edge.cause;
    place[count + k] = effect_first ? edge.cause : edge.effect;
    weight[k] = edge.weight;
  }
  return at::sparse_coo_tensor(places, weights, {file.nodes, file.nodes}).coalesce();
}

CausalEmbedding embed(const EmbedOptions& o, const at::Tensor& adjacency) {
  CausalEmbeddingOptions options = embedding_options(o.embedding);
  options.seed = static_cast<int64_t>(o.seed);
  ProgressBar bar("embed", options.steps, o.json);
  options.checkpoint = [&](int64_t step) {
    interrupt::check();
    bar.update(step);
  };
  try {
    return causal_embed(adjacency, options);
  } catch (const c10::ValueError& error) {  // of an option
    throw InputError(error.what_without_backtrace());
  }
}

int run_embed(const EmbedOptions& o) {
  const causal::GraphFile file = causal::read_graph(o.graph, text_options(o.text));
  say_reading(o.graph, size_of_graph(file), file.reading);
  const auto [effect_first, guess] = first_named(o, file);
  const at::Tensor adjacency = adjacency_of(file, effect_first);
  const CausalEmbedding made = embed(o, adjacency);
  if (!o.json) fmt::print(stderr, "{}", guess);
  const std::string warning = causal_embedding_warning(made.tangents, adjacency);
  warn_of_blank("embedding", warning);
  RunLog log(o);
  const CausalRanking ranking = causal_ranking(made.tangents, adjacency);
  if (!o.out.empty()) {
    write_ball(o.out, made, file.names.empty() ? column_names(file.nodes) : file.names, adjacency);
  }
  log.write("embed", {{"task", "embed"},
                      {"graph", o.graph},
                      {"read", {{"graph", to_json(file.reading)}}},
                      {"nodes", file.nodes},
                      {"edges", adjacency._nnz()},
                      {"pairs", effect_first ? "effect-cause" : "cause-effect"},
                      {"dimension", o.embedding.options.dimension},
                      {"optimiser", o.embedding.optimiser},
                      {"hops", made.hops},
                      {"side", causal::name_of(causal::kSideNames, made.side)},
                      {"loss", made.loss},
                      {"without_negatives", made.without_negatives},
                      {"mean_rank", ranking.mean_rank},
                      {"map", ranking.map},
                      {"warning", warning.empty() ? Json() : Json(warning)},
                      {"seconds", made.seconds}});
  if (o.json) return 0;
  print(fmt::format(
      "{} nodes, {} edges ({}), {} dimensions, {} hops, {}: {:.1f} s\n"
      "ancestors by distance: mean rank {:.3f}, MAP {:.4f}\n",
      file.nodes, adjacency._nnz(), effect_first ? "effect first" : "cause first",
      o.embedding.options.dimension, made.hops, causal::name_of(causal::kSideNames, made.side),
      made.seconds, ranking.mean_rank, ranking.map));
  if (made.without_negatives > 0) {
    print(fmt::format("{} of the nodes attract all others: nothing keeps these apart from them\n",
                      made.without_negatives));
  }
  return 0;
}

}  // namespace

void add_causal_embed(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<EmbedOptions>();
  options->embedding.options.dimension = 5;
  CLI::App& command = add_command(
      parent, session,
      {.name = "embed",
       .summary =
           "Place a graph in hyperbolic space: what is joined near, what causes much central",
       .examples = "nsimplex causal embed runs/er2/truth.csv --dimension 3 --out runs/ball\n"
                   "nsimplex causal embed mammal_closure.tsv --dimension 5 --json",
       .files = {"embedding.safetensors", "ball.csv", "edges.tsv"}},
      options, run_embed);
  command
      .add_option("GRAPH", options->graph,
                  "An adjacency matrix (csv, npy, npz; A_ij of i -> j) or a list of edges")
      ->required()
      ->type_name("");
  command
      .add_option("--pairs", options->pairs,
                  "What a list of edges names first; auto: the cause, but in a hierarchy without a "
                  "header that has more first than second names the effect (dog, mammal)")
      ->check(CLI::IsMember({"auto", "cause-effect", "effect-cause"}))
      ->capture_default_str();
  add_text_options(command, options->text, /*table=*/false);
  option_adder(command, "Embedding")("--dimension,--dim", options->embedding.options.dimension,
                                     "Coordinates of a point")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 16));
  add_embedding_flags(command, options->embedding, "Embedding", /*training=*/false);
}

}  // namespace nsimplex::cli
