// The commands `graph train` and `graph predict`: a Python program trains, this process keeps the
// run.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/python_program.h"
#include "cli/run_folder.h"
#include "support/error.h"
#include "support/log.h"
#include "train/ranks.h"

namespace nsimplex::cli {
namespace {

constexpr char kGraphModelFile[] = "model.safetensors", kGraphPredictions[] = "predictions.csv",
               kGraphTuples[] = "tuples.csv", kGraphSkipped[] = "skipped.csv",
               kGraphStructure[] = "structure.json";

// The files of a data set, as both commands take them.
struct GraphFiles : CommonOptions {
  std::string data, nodes, graphs;
};

struct GraphTrainOptions : GraphFiles {
  std::string task, target, kind = "auto", smiles = "smiles", ignore;
  bool directed = false, skip_bad = false;
  std::string structure = "auto";
  double validation = 0.1, test = 0.1;
  uint64_t split_seed = 0;
  std::vector<std::string> models;  // to compare; empty: `model` alone
  int64_t seeds = 1;
  std::string model = "transformer", form = "softmax", readout = "same", order = "data";
  int64_t width = 64, layers = 3, heads = 4, random_walk = 0, laplacian = 0;
  bool virtual_node = false, local = false;
  double dropout = 0.0;
  int64_t epochs = 100, batch = 32, warmup = 10, patience = 20;
  double learning_rate = 1e-3, weight_decay = 1e-2;
  std::string loss = "default";
};

struct GraphPredictOptions : GraphFiles {
  std::string run;
  int64_t explain = 0;
};

[[noreturn]] void throw_lost(const Json& error, training::Ranks& ranks) {
  const std::string text = error["text"];
  throw training::RanksLost(text.empty() ? text : ranks.describe_loss(error["seconds"], text));
}

// Models and readers of graphs are Python, which is told what to do in one JSON object. This
// process keeps the run folder and shows the results. The program's lines are
//   {"begin": true}: the input is usable; it waits until the run folder is there,
//   {"sync": true}: it waits until the lines before are on the disk,
//   {"log": {"kind": .., ..}}, {"table": [[..], ..]}, {"progress": [done, total, detail]},
//   {"warning": ".."}, {"error": {"kind": "ranks", "text": .., "seconds": ..}}: ranks were lost.
// On several ranks, every process starts a program, and the programs join a separate group. Those
// of other ranks than 0 write nothing but errors.
int run_graph_program(const GraphFiles& options, std::string_view action, Json request) {
  // The program's standard input has the answers to its lines.
  const std::pair<const char*, const std::string&> files[] = {
      {"DATA", options.data}, {"--nodes", options.nodes}, {"--graphs", options.graphs}};
  for (const auto& [name, path] : files) {
    if (path == "-") {
      throw InputError(fmt::format("{}: expected a file, got -, which is standard input", name));
    }
  }
  request["data"] = options.data;
  request["nodes"] = options.nodes;
  request["graphs"] = options.graphs;
  request["seed"] = options.seed;
  request["threads"] = options.threads;
  request["device"] = options.device;
  request["folder"] = options.out;
  request["resume"] = !options.resume.empty();
  std::unique_ptr<RunLog> log;
  std::unique_ptr<ProgressBar> bar;
  const auto take = [&](const Json& line) -> std::string {
    if (line.contains("begin")) {
      log = std::make_unique<RunLog>(options);
      return "ready";
    }
    if (line.contains("error")) throw_lost(line["error"], *options.ranks);
    if (line.contains("sync")) {
      if (log) log->sync();
      return "synced";
    }
    if (line.contains("log") && log) {
      log->write(line["log"].at("kind").get<std::string>(), line["log"]);
    } else if (line.contains("progress")) {
      const Json& done = line["progress"];
      if (!bar) {
        bar = std::make_unique<ProgressBar>(std::string(action), done[1], options.json);
        bar->start_at(done[0]);
      }
      bar->update(done[0], done[2].get<std::string>());
    } else if (line.contains("warning")) {
      log_line("warning: " + line["warning"].get<std::string>());
    } else if (line.contains("table") && !options.json) {
      if (bar) bar->finish();
      print(text_of_table(line["table"]));
    }
    return "";
  };
  const std::string text = one_line(request);
  const int code = run_python({.command = fmt::format("graph {}", action),
                               .module = "nsimplex.graph_command.__main__",
                               .package = "",
                               .extra = "",
                               .arguments = {std::string(action), text}},
                              take);
  if (bar) bar->finish();
  if (code == 0 && log) log->say_if_finished();
  return code;
}

int run_graph_train(const GraphTrainOptions& o) {
  if (!o.models.empty() && o.model != GraphTrainOptions().model) {
    throw InputError("--models: expected no --model with it, got " + o.model);
  }
  return run_graph_program(o, "train",
                           {{"task", o.task},
                            {"target", o.target},
                            {"kind", o.kind},
                            {"smiles", o.smiles},
                            {"ignore", o.ignore},
                            {"directed", o.directed},
                            {"skip_bad", o.skip_bad},
                            {"structure", o.structure},
                            {"validation", o.validation},
                            {"test", o.test},
                            {"split_seed", o.split_seed},
                            {"model", o.model},
                            {"models", o.models},
                            {"seeds", o.seeds},
                            {"width", o.width},
                            {"layers", o.layers},
                            {"heads", o.heads},
                            {"form", o.form},
                            {"readout", o.readout},
                            {"order", o.order},
                            {"virtual_node", o.virtual_node},
                            {"local", o.local},
                            {"random_walk", o.random_walk},
                            {"laplacian", o.laplacian},
                            {"dropout", o.dropout},
                            {"epochs", o.epochs},
                            {"batch", o.batch},
                            {"learning_rate", o.learning_rate},
                            {"weight_decay", o.weight_decay},
                            {"warmup", o.warmup},
                            {"patience", o.patience},
                            {"loss", o.loss}});
}

int run_graph_predict(const GraphPredictOptions& o) {
  return run_graph_program(o, "predict", {{"run", o.run}, {"explain", o.explain}});
}

void add_files(CLI::App& command, GraphFiles& options) {
  command
      .add_option(
          "DATA", options.data,
          "Edges or molecules in csv, arrays in npz or h5, what PyTorch Geometric saved, graph6, "
          "or hypergraphs in HIF")
      ->required()
      ->type_name("");
  command.add_option("--nodes", options.nodes, "csv with a row per node: name, features, target")
      ->type_name("FILE")
      ->group("Data");
  command.add_option("--graphs", options.graphs, "csv with a row per graph: name, target")
      ->type_name("FILE")
      ->group("Data");
}

}  // namespace

void add_graph_train(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<GraphTrainOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "train",
       .summary = "Train a model on your own graphs or hypergraphs, and keep it",
       .examples = "nsimplex graph train edges.csv --nodes nodes.csv --task node --target label "
                   "--out runs/nodes\n"
                   "nsimplex graph train molecules.csv --task graph --target logp --model gin\n"
                   "nsimplex graph train molecules.csv --task graph --target logp --models gcn,gin "
                   "--seeds 3\n"
                   "nsimplex graph train --resume runs/nodes",
       .acts = {.device = true},
       .resumes = true,
       .inputs = {&options->data, &options->nodes, &options->graphs},
       .files = {kGraphModelFile, kGraphSkipped, kGraphStructure},
       .named_after = [options] { return options->data; }},
      options, run_graph_train);
  add_files(command, *options);
  GraphTrainOptions& o = *options;
  const auto count = within(int64_t{0}, int64_t{1} << 20);
  const auto positive = within(int64_t{1}, int64_t{1} << 20);
  const auto encodings = within(int64_t{0}, int64_t{1024});
  const auto data = option_adder(command, "Data");
  command.add_option("--task", o.task, "What the target belongs to: graph, node, edge, hyperedge")
      ->required()
      ->check(one_of({"graph", "node", "edge", "hyperedge"}))
      ->group("Data");
  command.add_option("--target", o.target, "Column of the target, or several, between commas")
      ->required()
      ->type_name("COLUMN")
      ->group("Data");
  data("--kind", o.kind, "Kind of the targets: auto, number, binary, classes, labels")
      ->check(one_of({"auto", "number", "binary", "classes", "labels"}));
  data("--smiles", o.smiles, "Column of the molecules in a csv of SMILES")->type_name("COLUMN");
  data("--ignore", o.ignore, "Columns that are not features")->type_name("NAME,...");
  command.add_flag("--directed", o.directed, "Edges have the direction in which they are listed")
      ->group("Data");
  command.add_flag("--skip-bad", o.skip_bad, "Leave out rows that cannot be read, and list them")
      ->group("Data");
  data("--structure", o.structure,
       "Rows of edges or hyperedges that are the graph: all; positive (rows of the training with "
       "target 1, for link prediction); auto (positive for targets 0 and 1 in one graph)")
      ->check(one_of({"auto", "all", "positive"}));
  const auto split = option_adder(command, "Split");
  const auto share = within(0.0, 1.0);
  split("--validation", o.validation, "Share of the rows for validation, which chooses the epoch")
      ->check(share);
  split("--test", o.test, "Share of the rows for testing")->check(share);
  split("--split-seed", o.split_seed, "Seed of the split, which does not depend on --seed");
  const auto model = option_adder(command, "Model");
  const std::vector<std::string> models{"transformer", "gcn", "gin",     "gat",
                                        "hyper-sagnn", "s2g", "s2g-plus"};
  model(
      "--model", o.model,
      "transformer; message passing: gcn, gin, gat; for tuples by their nodes alone: hyper-sagnn, "
      "s2g, s2g-plus")
      ->check(one_of(models));
  model("--order", o.order, "Sizes of tuples, between commas; data: those of the edges")
      ->type_name("N,...");
  model("--form", o.form, "Attention of the layers: softmax, kernel, decoupled")
      ->check(one_of({"softmax", "kernel", "decoupled"}));
  model("--readout", o.readout,
        "Attention of the read-outs: softmax, kernel, decoupled, or same (as in the layers)")
      ->check(one_of({"same", "softmax", "kernel", "decoupled"}));
  model("--width", o.width, "Channels of all layers")->check(positive);
  model("--layers", o.layers, "Number of layers")->check(positive);
  model("--heads", o.heads, "Heads, a divisor of the width")->check(positive);
  command.add_flag("--virtual-node", o.virtual_node, "A vector that all nodes of a graph share")
      ->group("Model");
  command.add_flag("--local", o.local, "No attention between tuples that share no node")
      ->group("Model");
  model("--random-walk", o.random_walk, "Number of random-walk encodings of nodes")
      ->check(encodings);
  model("--laplacian", o.laplacian, "Number of Laplacian encodings of nodes")->check(encodings);
  model("--dropout", o.dropout, "Rate of dropout")->check(within(0.0, 0.99));
  command
      .add_option("--models", o.models, "Models to compare on the same split, instead of --model")
      ->delimiter(',')
      ->check(one_of(models))
      ->group("Comparison");
  option_adder(command, "Comparison")("--seeds", o.seeds,
                                      "Trainings of each model, with seeds from --seed on")
      ->check(within(int64_t{1}, int64_t{1000}));
  const auto training = option_adder(command, "Training");
  training("--epochs", o.epochs, "Most epochs")->check(positive);
  training("--batch", o.batch, "Graphs per step, unless there is one graph")->check(positive);
  training("--lr", o.learning_rate, "Highest learning rate of AdamW")->check(within(1e-12, 100.0));
  training("--weight-decay", o.weight_decay, "Weight decay of AdamW")->check(within(0.0, 100.0));
  training("--warmup", o.warmup, "Steps over which the rate rises")->check(count);
  training("--patience", o.patience,
           "Stop after this many epochs without a better validation; 0: never")
      ->check(count);
  training("--loss", o.loss,
           "Loss: default (by --kind), squared (numbers) or soft_f1 (binary targets)")
      ->check(one_of({"default", "squared", "soft_f1"}));
}

void add_graph_predict(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<GraphPredictOptions>();
  CLI::App& command =
      add_command(parent, session,
                  {.name = "predict",
                   .summary = "Predict for new graphs, nodes or edges with a model of graph train",
                   .examples = "nsimplex graph predict runs/nodes edges.csv --nodes nodes.csv\n"
                               "nsimplex graph predict runs/molecules new.csv --out runs/new\n"
                               "nsimplex graph predict runs/molecules new.csv --explain 5",
                   .acts = {.seed = false, .device = true},
                   .files = {kGraphPredictions, kGraphTuples}},
                  options, run_graph_predict);
  add_argument(command, "RUN", options->run,
               "The run folder of graph train, or its model.safetensors");
  add_files(command, *options);
  command
      .add_option("--explain", options->explain,
                  "Also list this many tuples of largest attention per prediction")
      ->check(within(int64_t{0}, int64_t{1000}));
}

}  // namespace nsimplex::cli
