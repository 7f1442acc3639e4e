// `nsimplex lab pays`: where a higher order pays, with the tasks and models of nsimplex.lab.pays.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/python_program.h"
#include "lab/experiments.h"

namespace nsimplex::cli {
namespace {

struct PaysOptions : CommonOptions {
  std::vector<std::string> tasks;
  bool all = false, list = false, quick = false, table = false, full = false;
  std::string results = "pays.jsonl", models = "1x1,1x2,1x4,1x6,2x1,2x2,1+2x2,3x1";
  std::string layer, depth = "1,2", rates = "0.003,0.01", equal = "flops", norm = "none", figure;
  int64_t seeds = 3, steps = 0, batch = 0, dim = 32;
  double minutes = 20;
};

std::vector<std::string> words_of(const PaysOptions& o) {
  std::vector<std::string> words = o.tasks;
  const auto flag = [&](const char* name, bool given) {
    if (given) words.emplace_back(name);
  };
  const auto value = [&](const char* name, const auto& own) {
    words.push_back(fmt::format("{}={}", name, own));
  };
  flag("--all", o.all);
  flag("--list", o.list);
  flag("--quick", o.quick);
  flag("--table", o.table);
  flag("--full", o.full);
  value("--out", o.results);
  value("--models", o.models);
  value("--layer", o.layer);
  value("--depth", o.depth);
  value("--seeds", o.seeds);
  value("--rates", o.rates);
  value("--steps", o.steps);
  value("--batch", o.batch);
  value("--width", o.dim);
  value("--equal", o.equal);
  value("--norm", o.norm);
  value("--minutes", o.minutes);
  value("--threads", o.threads);
  value("--figure", o.figure);
  return words;
}

int run_pays(const PaysOptions& o) {
  const Json request{{"threads", o.threads}, {"words", words_of(o)}};
  return run_python({.command = "lab pays",
                     .module = "nsimplex.lab.pays.command",
                     .package = "",
                     .extra = "",
                     .arguments = {one_line(request)}},
                    [&](const Json& line) -> std::string {
                      if (line.contains("text") && !o.json)
                        print(line["text"].get<std::string>() + "\n");
                      if (line.contains("log") && o.json)
                        print_json_line(line["log"].at("kind").get<std::string>(), line["log"]);
                      return "";
                    });
}

}  // namespace

void add_lab_pays(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<PaysOptions>();
  options->threads = 1;
  CLI::App& command =
      add_command(parent, session,
                  {.name = "pays",
                   .summary = "Compare attention of several orders at equal cost, task by task",
                   .examples = "nsimplex lab pays --list\n"
                               "nsimplex lab pays joint-recall composition\n"
                               "nsimplex lab pays --all --out runs/pays.jsonl\n"
                               "nsimplex lab pays --table --out runs/pays.jsonl",
                   .acts = {.out = false, .seed = false}},
                  options, run_pays);
  PaysOptions& o = *options;
  command.add_option("TASK", o.tasks, "Names of tasks; --list shows them")->type_name("");
  command.add_flag("--all", o.all, "All tasks");
  command.add_flag("--list", o.list, "List the tasks and stop");
  const auto results = option_adder(command, "Results");
  results("--out", o.results, "File of results, one JSON object per line, which is continued")
      ->type_name("FILE");
  command.add_flag("--table", o.table, "Print a table of the results in --out and stop")
      ->group("Results");
  command.add_option("--figure", o.figure, "Draw the results in --out into this SVG file and stop")
      ->type_name("FILE")
      ->group("Results");
  const auto model = option_adder(command, "Models");
  model("--models", o.models, "Models as ORDERxDEPTH, between commas")->type_name("NAME,...");
  command
      .add_option("--layer", o.layer,
                  "Compare your own layer too: MODULE:NAME, from a package or this folder")
      ->type_name("LAYER")
      ->group("Models");
  model("--depth", o.depth, "Numbers of layers that --layer is tried with, between commas")
      ->type_name("N,...");
  model("--width", o.dim, "Width of the reference model, one layer of order 2");
  model("--equal", o.equal, "Cost that is equal for all models: flops, parameters or seconds")
      ->check(one_of({"flops", "parameters", "seconds"}));
  command
      .add_flag("--full", o.full,
                "Make one comparison for each kind of --equal, one after the other")
      ->group("Models");
  model("--norm", o.norm, "RMS-normalise queries and keys: none or qk")
      ->check(one_of({"none", "qk"}));
  const auto training = option_adder(command, "Training");
  training("--seeds", o.seeds, "Number of seeds");
  training("--rates", o.rates, "Peak learning rates that the first seed tries, between commas")
      ->type_name("X,...");
  training("--steps", o.steps, "Training steps; 0: the task's");
  training("--batch", o.batch, "Sequences per step; 0: the task's");
  training("--minutes", o.minutes, "Start no run of a task after this many minutes; 0: no limit");
  command.add_flag("--quick", o.quick, "Check that everything runs: 20 steps, one seed, one rate")
      ->group("Training");
}

}  // namespace nsimplex::cli
