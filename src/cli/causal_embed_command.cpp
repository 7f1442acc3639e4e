// The command `causal embed`: the hyperbolic embedding of a graph from a file.

#include "cli/causal_embed_command.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nsimplex/causal_embedding.h>

#include <algorithm>

#include "causal/embedding/neighbours.h"
#include "causal/graph/graph_text.h"
#include "causal/graph/weighted_graph.h"
#include "causal/option_names.h"
#include "cli/causal_table.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "cli/text_flags.h"
#include "io/output_file.h"
#include "io/safetensors.h"
#include "support/error.h"
#include "support/log.h"

namespace nsimplex::cli {

void add_embedding_flags(CLI::App& command, EmbeddingFlags& flags, const std::string& group,
                         bool training) {
  CausalEmbeddingOptions& o = flags.options;
  const std::string prefix = training ? "--embed-" : "--";
  const auto add = option_adder(command, group);
  std::vector<std::string> attracting = names_of<AttractionSide>();
  attracting.insert(attracting.begin(), "auto");
  add("--optimiser", flags.optimiser,
      "Optimiser: tangent (Adam on tangents at the origin), radam or rsgd (Riemannian)")
      ->check(one_of(names_of<EmbeddingOptimiser>()));
  add(prefix + "steps", o.steps, training ? "Steps of the embedding" : "Steps over all nodes")
      ->check(within(int64_t{1}, int64_t{1} << 30));
  add(prefix + "lr", flags.learning_rate,
      training ? "Learning rate of the embedding; 0: the default of its optimiser"
               : "Learning rate; 0: 1 for tangent, 0.3 for radam, 0.1 for rsgd")
      ->check(at_least_zero());
  add("--hops", flags.hops,
      "Most edges between nodes that attract each other; 0: 1 in a hierarchy, else 2")
      ->check(within(int64_t{0}, int64_t{1} << 30));
  add("--attract", flags.side,
      "Nodes that attract: both (causes and effects), causes (effects repel) or auto (causes in a "
      "hierarchy, else both)")
      ->check(one_of(attracting));
  add("--weight", flags.weight,
      "Weight of a pair: paths (strengths of all paths) or direct (only |A|)")
      ->check(one_of(names_of<AttractionWeight>()));
  add("--decay", o.decay, "Factor of a path's strength per further edge");
  add("--negatives", flags.negatives,
      "Negatives per step; 0: all nodes; -1: all up to 2,000 nodes, else 512");
  command
      .add_flag("--given-weights", flags.given_weights,
                "Use the weights as given, without removing units and their common size")
      ->group(group);
  add("--generality", o.generality,
      "Strength lambda_g with which general nodes are drawn to the origin")
      ->check(at_least_zero());
  command
      .add_flag("--absolute", flags.absolute,
                "Use the pull as printed, --generality times pi times the distance, instead of "
                "scaling it by M and the weights of the node's pairs")
      ->group(group);
  add("--restart", o.restart, "Restart probability of the PageRank");
  add("--dangling", flags.dangling,
      "Walks at nodes without causes: uniform (go on to any node) or eigenvector (end)")
      ->check(one_of(names_of<DanglingRule>()));
}

CausalEmbeddingOptions embedding_options(const EmbeddingFlags& flags) {
  CausalEmbeddingOptions options = flags.options;
  options.optimiser = parse_name<EmbeddingOptimiser>("--optimiser", flags.optimiser);
  options.weight = parse_name<AttractionWeight>("--weight", flags.weight);
  options.dangling = parse_name<DanglingRule>("--dangling", flags.dangling);
  if (flags.side != "auto") {
    options.side = parse_name<AttractionSide>("--attract", flags.side);
  }
  if (flags.hops > 0) options.hops = flags.hops;
  if (flags.negatives >= 0) options.negatives = flags.negatives;
  if (flags.learning_rate > 0) options.learning_rate = flags.learning_rate;
  if (flags.absolute) options.relative = false;
  if (flags.given_weights) options.balanced = false;
  return options;
}

void warn_of_blank(const std::string& what, const std::string& warning) {
  if (!warning.empty()) log_warning_once(what, what + ": " + warning);
}

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

std::string names_text(const std::vector<std::string>& names) { return one_line(Json(names)); }

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

namespace {

struct EmbedOptions : CommonOptions {
  std::string graph, pairs = "auto";
  TextFlags text;
  EmbeddingFlags embedding;
};

// Whether a hierarchy's list of edges has kinds first: more nodes share a second node than a first
// one.
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

// Which end a list of edges names first, and the message if this was guessed.
struct FirstNamed {
  bool effect = false;
  std::string guess;
};

// Without --pairs and a header, only a hierarchy may name the effect first: these are written "dog,
// mammal".
FirstNamed first_named(const EmbedOptions& o, const causal::GraphFile& file) {
  if (o.pairs != "auto") return {o.pairs == "effect-cause", ""};
  if (file.complete || file.edges.empty() || file.roles || !is_hierarchy(file)) return {};
  const bool effect = gathers(file);
  const auto name = [&](int64_t node) {
    return quoted_name(file.names.empty() ? std::to_string(node)
                                          : file.names[static_cast<size_t>(node)]);
  };
  const auto& edge = file.edges.front();
  return {effect, fmt::format("{}: it is a hierarchy without a header, so the first column is read "
                              "as the {}: {} is the {} of {}; use --pairs {} if this is wrong\n",
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
  } catch (const c10::ValueError& error) {  // caused by an option
    throw InputError(error.what_without_backtrace());
  }
}

int run_embed(const EmbedOptions& o) {
  const causal::GraphFile file = causal::read_graph(o.graph, text_options(o.text));
  say_reading(o.text, o.graph, size_of_graph(file), file.reading);
  const auto [effect_first, guess] = first_named(o, file);
  const at::Tensor adjacency = adjacency_of(file, effect_first);
  const CausalEmbedding made = embed(o, adjacency);
  if (!o.json) print_error(guess);
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
                      {"side", name_of(made.side)},
                      {"loss", made.loss},
                      {"without_negatives", made.without_negatives},
                      {"mean_rank", ranking.mean_rank},
                      {"map", ranking.map},
                      {"warning", warning.empty() ? Json() : Json(warning)},
                      {"seconds", made.seconds}});
  if (o.json) return 0;
  print(
      fmt::format("{} nodes, {} edges ({}), {} dimensions, {} hops, {}: {:.1f} s\n"
                  "ancestors by distance: mean rank {:.3f}, MAP {:.4f}\n",
                  file.nodes, adjacency._nnz(), effect_first ? "effect first" : "cause first",
                  o.embedding.options.dimension, made.hops, name_of(made.side), made.seconds,
                  ranking.mean_rank, ranking.map));
  if (made.without_negatives > 0) {
    print(fmt::format("{} of the nodes attract all others, so no node repels them\n",
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
       .summary = "Embed a graph in hyperbolic space, with connected nodes close and general "
                  "causes central",
       .examples = "nsimplex causal embed runs/er2/truth.csv --dimension 3 --out runs/ball\n"
                   "nsimplex causal embed mammal_closure.tsv --dimension 5 --json",
       .files = {"embedding.safetensors", "ball.csv", "edges.tsv"}},
      options, run_embed);
  add_argument(command, "GRAPH", options->graph,
               "An adjacency matrix (csv, npy, npz; A_ij of i -> j) or a list of edges");
  command
      .add_option("--pairs", options->pairs,
                  "Columns of a list of edges: cause-effect, effect-cause or auto; auto is "
                  "effect-cause in a hierarchy without a header that has more first than second "
                  "names (dog, mammal), else cause-effect")
      ->check(one_of({"auto", "cause-effect", "effect-cause"}))
      ->capture_default_str();
  add_text_options(command, options->text, /*table=*/false);
  option_adder(command, "Embedding")("--dimension", options->embedding.options.dimension,
                                     "Number of coordinates of a point")
      ->check(within(int64_t{2}, int64_t{1} << 16));
  add_embedding_flags(command, options->embedding, "Embedding", /*training=*/false);
}

}  // namespace nsimplex::cli
