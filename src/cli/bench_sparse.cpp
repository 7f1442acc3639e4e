// The command `bench sparse`: the speed of sparse attention against a matrix product.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <nsimplex/sparse_attention.h>
#include <torch/csrc/autograd/autograd.h>

#include "attention/common/attention_names.h"
#include "cli/attention_case.h"
#include "cli/bench_command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "support/error.h"
#include "support/require.h"

namespace nsimplex::cli {
namespace {

using at::Tensor;

struct SparseOptions : CommonOptions {
  std::string pattern = "product", form = "product", reduce = "product", pass = "forward";
  std::string dtype = "float32";
  int order = 2;
  int64_t batch = 1, heads = 1, kv_heads = 0, seq = 4096, dim = 64, value_dim = 0, size = 128;
  int repeats = 5;
  bool peers = false;
};

struct SparseInputs {
  Tensor query, grad_out, indices;
  std::vector<Tensor> keys, values;
  std::optional<Tensor> offsets;
  SparseAttentionOptions options;
};

// Random sets of different keys up to each position: [1, 1, seq, size], shared by all heads.
Tensor causal_sets(const SparseOptions& o, at::Generator& generator) {
  const int64_t size = std::min(o.size, o.seq);
  Tensor sets = at::empty({1, 1, o.seq, size}, at::kLong);
  for (int64_t i = 0; i < o.seq; ++i) {
    const Tensor chosen = at::randperm(i + 1, generator, at::kLong).slice(0, 0, size);
    Tensor row = sets[0][0][i];
    row.fill_(-1).slice(0, 0, chosen.size(0)).copy_(std::get<0>(chosen.sort()));
  }
  return sets;
}

// `size` random tuples per query, of keys up to its position, in lexicographic order.
void make_list(const SparseOptions& o, at::Generator& generator, SparseInputs& inputs) {
  const Tensor limits = at::arange(1, o.seq + 1).view({-1, 1, 1});
  Tensor tuples =
      at::rand({o.seq, o.size, o.order}, generator, at::kDouble).mul(limits).to(at::kLong);
  Tensor code = at::zeros({o.seq, o.size}, at::kLong);
  for (const Tensor& key : tuples.unbind(2)) code = code.mul(o.seq).add(key);
  const Tensor order = std::get<1>(code.sort(1)).unsqueeze(2).expand_as(tuples);
  inputs.indices = tuples.gather(1, order).flatten(0, 1);
  inputs.offsets = at::arange(o.seq + 1).mul(o.size).view({1, 1, -1});
}

SparseInputs make_sparse_inputs(const SparseOptions& o) {
  at::Generator generator = at::detail::createCPUGenerator(o.seed);
  const auto tensor = [&](int64_t heads, int64_t dim) {
    return at::randn({o.batch, heads, o.seq, dim}, generator, at::kDouble).to(scalar_type(o.dtype));
  };
  SparseInputs inputs;
  inputs.query = tensor(o.heads, o.dim);
  for (int m = 0; m < o.order; ++m) {
    inputs.keys.push_back(tensor(o.kv_heads, o.dim));
    inputs.values.push_back(tensor(o.kv_heads, o.value_dim));
  }
  inputs.grad_out = tensor(o.heads, o.value_dim);
  inputs.options.pattern = parse_name<TuplePattern>("--pattern", o.pattern);
  inputs.options.form = parse_name<Form>("--form", o.form);
  inputs.options.reduce = parse_name<TupleReduce>("--reduce", o.reduce);
  if (inputs.options.pattern == TuplePattern::list) {
    make_list(o, generator, inputs);
  } else {
    inputs.indices = causal_sets(o, generator);
  }
  return inputs;
}

using Operator = AttentionOutput(const Tensor&, at::TensorList, at::TensorList, const Tensor&,
                                 const std::optional<Tensor>&, const SparseAttentionOptions&);

// One call of the pass, ready to be repeated. The backward pass is timed separately, on a graph
// that is kept.
std::function<void()> prepare(Operator* run, const SparseInputs& inputs, bool backward) {
  if (!backward) {
    return [=] {
      const c10::NoGradGuard no_grad;
      run(inputs.query, inputs.keys, inputs.values, inputs.indices, inputs.offsets, inputs.options);
    };
  }
  std::vector<Tensor> leaves{inputs.query};
  leaves.insert(leaves.end(), inputs.keys.begin(), inputs.keys.end());
  leaves.insert(leaves.end(), inputs.values.begin(), inputs.values.end());
  for (Tensor& leaf : leaves) leaf = leaf.detach().requires_grad_(true);
  const at::TensorList all(leaves);
  const size_t order = inputs.keys.size();
  const Tensor out = run(leaves[0], all.slice(1, order), all.slice(1 + order), inputs.indices,
                         inputs.offsets, inputs.options)
                         .out;
  return [out, leaves, grad_out = inputs.grad_out] {
    torch::autograd::grad({out}, leaves, {grad_out}, /*retain_graph=*/true);
  };
}

void check_sizes(SparseOptions& o) {
  if (o.kv_heads == 0) o.kv_heads = o.heads;
  if (o.value_dim == 0) o.value_dim = o.dim;
  require(o.heads % o.kv_heads == 0, "--kv-heads: ", o.heads, " query heads cannot share ",
          o.kv_heads, " key/value heads evenly");
  require(o.form == name_of(Form::product) || o.dim % (o.order + 1) == 0,
          "--width: expected a multiple of ", o.order + 1, " for the determinant, got ", o.dim);
  o.dtype = name_of(scalar_type(o.dtype));
}

int run_bench_sparse(const SparseOptions& given) {
  SparseOptions o = given;
  check_sizes(o);
  RunLog log(o);
  const SparseInputs inputs = make_sparse_inputs(o);
  const bool backward = o.pass == "backward";
  const double tuples = sparse_attention_tuples(inputs.query, inputs.keys, inputs.values,
                                                inputs.indices, inputs.offsets, inputs.options);
  const double flops = (backward ? 3 : 1) * 2.0 * static_cast<double>(o.dim + o.value_dim) * tuples;
  const at::ScalarType dtype = scalar_type(o.dtype);
  const Tensor left = at::randn({kGemmSize, kGemmSize}).to(dtype);
  const Tensor right = at::randn({kGemmSize, kGemmSize}).to(dtype);
  Tensor product = at::empty({kGemmSize, kGemmSize}, dtype);
  std::vector<std::function<void()>> work{prepare(sparse_attention, inputs, backward),
                                          [&] { at::mm_out(product, left, right); }};
  if (o.peers) work.push_back(prepare(sparse_attention_reference, inputs, backward));

  ProgressBar bar("round", o.repeats, o.json);
  bar.update(0);
  const auto medians = interleaved_medians(work, o.repeats, [&](int round) { bar.update(round); });
  bar.finish();
  const double gflops = flops / medians[0] * 1e-6;
  const double gemm = 2.0 * kGemmSize * kGemmSize * kGemmSize / medians[1] * 1e-6;
  Json line{{"operator", "sparse_attention"},
            {"pattern", o.pattern},
            {"pass", o.pass},
            {"order", o.order},
            {"dtype", o.dtype},
            {"threads", at::get_num_threads()},
            {"batch", o.batch},
            {"heads", o.heads},
            {"kv_heads", o.kv_heads},
            {"seq", o.seq},
            {"dim", o.dim},
            {"size", o.size},
            {"tuples", tuples},
            {"milliseconds", medians[0]},
            {"gflops", gflops},
            {"sgemm_gflops", gemm},
            {"ratio", gflops / gemm}};
  if (o.peers) line["reference_milliseconds"] = medians[2];
  add_processor(line);
  log.write("bench", line);
  if (o.json) return 0;
  print(fmt::format("sparse_attention {}, {}, order {}, {}: batch {}, heads {}/{}, seq {}, dim {}, "
                    "size {}, {:.0f} tuples\n",
                    o.pass, o.pattern, o.order, o.dtype, o.batch, o.heads, o.kv_heads, o.seq, o.dim,
                    o.size, tuples) +
        processor_line());
  std::vector<std::string> header{"threads", "ms", "GFLOP/s",
                                  o.dtype == "float32" ? "sgemm" : o.dtype + " mm", "ratio"};
  std::vector<std::string> row{fmt::format("{}", at::get_num_threads()),
                               fmt::format("{:.2f}", medians[0]), fmt::format("{:.1f}", gflops),
                               fmt::format("{:.1f}", gemm), fmt::format("{:.3f}", gflops / gemm)};
  if (o.peers) {
    header.insert(header.end(), {"reference ms", "speed-up"});
    row.insert(row.end(), {fmt::format("{:.1f}", medians[2]),
                           fmt::format("{:.1f}x", medians[2] / medians[0])});
  }
  Table table(header);
  table.add(row);
  print(table.text());
  return 0;
}

}  // namespace

void add_bench_sparse(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<SparseOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "sparse",
       .summary = "Measure the rate of attention over lists of tuples relative to this machine's "
                  "matrix product",
       .examples = "nsimplex bench sparse --threads 1\n"
                   "nsimplex bench sparse --pattern path --size 16 --pass backward --threads 1\n"
                   "nsimplex bench sparse --pattern list --size 256 --heads 4 --json"},
      options, run_bench_sparse);
  const auto name = [&](const char* flag, std::string& value, std::vector<std::string> known,
                        const char* text) {
    command.add_option(flag, value, text)->check(one_of(known))->capture_default_str();
  };
  const auto count = [&](const char* flag, int64_t& value, int64_t least, const char* text) {
    command.add_option(flag, value, text)
        ->check(within(least, int64_t{1} << 40))
        ->capture_default_str();
  };
  name("--pattern", options->pattern, names_of<TuplePattern>(),
       "Kind of list: list, product or path");
  name("--pass", options->pass, {"forward", "backward"}, "Pass: forward or backward");
  count("--size", options->size, 1,
        "Number of random keys per set, none after the query; of --pattern list, number of random "
        "tuples per query");
  command.add_option("--order", options->order, "Key axes N")
      ->check(within(1, 8))
      ->capture_default_str();
  count("--batch", options->batch, 1, "Batch entries");
  count("--heads", options->heads, 1, "Query heads");
  count("--kv-heads", options->kv_heads, 0, "Key/value heads; 0: as --heads");
  count("--seq", options->seq, 1, "Queries, and keys on every axis");
  count("--width", options->dim, 1, "Channels of queries and keys");
  count("--value-width", options->value_dim, 0, "Channels of values; 0: as --width");
  name("--form", options->form, names_of<Form>(), "Form of the scores");
  name("--reduce", options->reduce, names_of<Reduce>(), "How the values of a tuple are combined");
  add_dtype_flag(command, options->dtype)->capture_default_str();
  command.add_option("--repeats", options->repeats, "Number of rounds; the median counts")
      ->check(within(1, 100000))
      ->capture_default_str();
  command.add_flag("--peers", options->peers, "Also time the plain version of the operator");
}

}  // namespace nsimplex::cli
