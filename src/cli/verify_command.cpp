// The command `verify`: a check of dense attention against a double-precision reference.

#include "cli/verify_command.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "cli/attention_case.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "kernels/cpu/shared/simd.h"

namespace nsimplex::cli {
namespace {

// Inputs with this standard deviation keep |logit| far below 30, for which the absolute limits
// hold.
constexpr double kModerateAmplitude = 1.0;
constexpr double kForwardGate = 2e-5, kGradientGate = 1e-4;

using Attention = AttentionOutput(const at::Tensor&, at::TensorList, at::TensorList,
                                  const AttentionOptions&);

// All results of the operator for a case.
struct Outcome {
  at::Tensor out, lse;
  std::vector<at::Tensor> gradients;  // query, keys, values, then those of mask and sink
};

Outcome compute(Attention* attention, const AttentionInputs& inputs, at::ScalarType dtype) {
  const auto leaf = [&](const at::Tensor& tensor) {
    return tensor.to(dtype).detach().requires_grad_(true);
  };
  std::vector<at::Tensor> leaves{leaf(inputs.query)}, keys, values;
  for (const at::Tensor& key : inputs.keys) leaves.push_back(keys.emplace_back(leaf(key)));
  for (const at::Tensor& value : inputs.values) leaves.push_back(values.emplace_back(leaf(value)));
  AttentionOptions options = inputs.options;
  const auto add_option = [&](std::optional<at::Tensor>& option) {
    if (option && option->is_floating_point()) leaves.push_back(option.emplace(leaf(*option)));
  };
  add_option(options.mask);
  add_option(options.sink);
  const AttentionOutput output = attention(leaves[0], keys, values, options);
  // lse has its own weight for each query, so that its gradient is checked too. Rows without a
  // tuple have lse = -inf and no gradient.
  const at::Tensor lse_weight = inputs.grad_out.select(-1, 0)
                                    .to(output.lse.scalar_type())
                                    .masked_fill(output.lse.isneginf(), 0);
  Outcome outcome{output.out.detach(), output.lse.detach(), {}};
  outcome.gradients = torch::autograd::grad({output.out, output.lse}, leaves,
                                            {inputs.grad_out.to(dtype), lse_weight});
  return outcome;
}

double relative_error(const at::Tensor& value, const at::Tensor& exact) {
  const double scale = exact.norm().item<double>();
  const double difference = value.to(at::kDouble).sub(exact).norm().item<double>();
  return scale > 0 ? difference / scale : difference;
}

// The largest number of tuples of a query of the case, at least 2.
double tuples_of_a_query(const AttentionCase& shape) {
  double most = 1;
  for (int axis = 0; axis < shape.order; ++axis) {
    const int64_t window = shape.window.empty() ? -1 : shape.window[axis];
    const int64_t length = shape.keys[axis];
    most *= static_cast<double>(window < 0 ? length : std::min(window, length));
  }
  return std::max(most, 2.0);
}

double epsilon(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return std::ldexp(1.0, -52);
    case at::kBFloat16:
      return std::ldexp(1.0, -7);
    case at::kHalf:
      return std::ldexp(1.0, -10);
    default:
      return std::ldexp(1.0, -23);
  }
}

// Gradients come from exp(logit - lse), and a float32 lse is correct to half an epsilon of its
// size. With logits of hundreds this is more than all other rounding. The plain version may be
// luckier. Beyond 256 gradients come from the maximum and the sum instead.
double lse_rounding(const at::Tensor& lse, at::ScalarType dtype) {
  if (lse.numel() == 0) return 0.0;
  const double held = dtype == at::kDouble ? epsilon(at::kDouble) : epsilon(at::kFloat);
  return 0.5 * held * std::min(lse.abs().max().item<double>(), 256.0);
}

// Collects tensors and keeps the one that is closest to its limit.
class Worst {
 public:
  Worst(double rounding, double gate) : rounding_(rounding), gate_(gate) {}

  void add(const std::string& tensor, const at::Tensor& value, const at::Tensor& plain,
           const at::Tensor& exact) {
    const double limit = std::min(2 * relative_error(plain, exact) + rounding_, gate_);
    const double error = relative_error(value, exact);
    if (std::isnan(error) || deviation_.limit == 0 ||
        error / limit > deviation_.error / deviation_.limit) {
      deviation_ = {tensor, error, limit};
    }
  }

  Deviation deviation() const { return deviation_; }

 private:
  double rounding_, gate_;
  Deviation deviation_;
};

bool same_bits(const Outcome& a, const Outcome& b) {
  // equal() for NaN and -0 as well: compares the bytes, not the numbers.
  const auto bytes = [](const at::Tensor& tensor) { return tensor.contiguous().view(at::kByte); };
  const auto same = [&](const at::Tensor& x, const at::Tensor& y) {
    return x.numel() == 0 || at::equal(bytes(x), bytes(y));
  };
  return same(a.out, b.out) && same(a.lse, b.lse) &&
         std::equal(a.gradients.begin(), a.gradients.end(), b.gradients.begin(), same);
}

std::string gradient_name(size_t index, size_t order) {
  if (index == 0) return "query";
  if (index <= order) return fmt::format("key {}", index);
  if (index <= 2 * order) return fmt::format("value {}", index - order);
  return "mask or sink";
}

bool all_zero(const at::Tensor& tensor) { return !tensor.ne(0).any().item<bool>(); }

}  // namespace

CaseResult verify_attention(const AttentionCase& shape, uint64_t seed) {
  const at::ScalarType dtype = scalar_type(shape.dtype);
  const AttentionInputs inputs = make_inputs(shape, seed);
  const Outcome exact = compute(attention_reference, inputs, at::kDouble);
  const Outcome plain = compute(attention_reference, inputs, dtype);
  const Outcome ours = compute(attention, inputs, dtype);

  CaseResult result;
  const at::Tensor empty = exact.lse.isneginf();
  result.empty_rows_right = at::equal(ours.lse.isneginf(), empty) &&
                            all_zero(ours.out.masked_select(empty.unsqueeze(-1))) &&
                            all_zero(ours.gradients[0].masked_select(empty.unsqueeze(-1)));

  const double rounding = 4 * epsilon(dtype) * std::sqrt(std::log2(tuples_of_a_query(shape)));
  const bool gated = dtype == at::kFloat && shape.amplitude <= kModerateAmplitude;
  const double none = std::numeric_limits<double>::infinity();
  const auto finite = [&](const at::Tensor& lse) { return lse.masked_fill(empty, 0); };
  Worst forward(rounding, gated ? kForwardGate : none);
  forward.add("out", ours.out, plain.out, exact.out);
  forward.add("lse", finite(ours.lse), finite(plain.lse), finite(exact.lse));
  result.forward = forward.deviation();

  Worst backward(rounding + lse_rounding(finite(exact.lse), dtype), gated ? kGradientGate : none);
  for (size_t i = 0; i < exact.gradients.size(); ++i) {
    backward.add(gradient_name(i, inputs.keys.size()), ours.gradients[i], plain.gradients[i],
                 exact.gradients[i]);
  }
  result.backward = backward.deviation();

  const int threads = at::get_num_threads();
  const bool again = same_bits(ours, compute(attention, inputs, dtype));
  at::set_num_threads(threads > 1 ? 1 : 2);
  result.same_bits = again && same_bits(ours, compute(attention, inputs, dtype));
  at::set_num_threads(threads);
  return result;
}

namespace {

struct VerifyOptions : CommonOptions {
  std::vector<std::string> cases;
};

std::vector<NamedCase> chosen_cases(const VerifyOptions& options) {
  if (options.cases.empty()) return verification_cases();
  std::vector<NamedCase> chosen;
  for (const std::string& name : options.cases) chosen.push_back(find_case(name));
  return chosen;
}

// The command that repeats one case here. The forced SIMD level, the threads and the seed are part
// of it.
std::string repeat_command(const VerifyOptions& options, const std::string& name) {
  const char* simd = std::getenv("NSIMPLEX_SIMD");
  std::string command = simd ? fmt::format("NSIMPLEX_SIMD={} ", simd) : "";
  command += fmt::format("nsimplex verify --case {} --seed {}", name, options.seed);
  if (options.threads > 0) command += fmt::format(" --threads {}", options.threads);
  return command;
}

std::string verdict(const CaseResult& result) {
  if (result.passed()) return "ok";
  if (!result.empty_rows_right) return "FAIL: rows without a tuple";
  if (!result.same_bits) return "FAIL: bits differ";
  const Deviation& worse = result.forward.passed() ? result.backward : result.forward;
  return "FAIL: " + worse.tensor;
}

int run_verify(const VerifyOptions& options) {
  const std::vector<NamedCase> cases = chosen_cases(options);
  Table table({"case", "dtype", "forward", "allowed", "gradient", "allowed", "result"});
  std::vector<std::string> failures;
  ProgressBar bar("case", static_cast<int64_t>(cases.size()), options.json);
  int64_t done = 0;
  for (const auto& [name, flags, shape] : cases) {
    if (interrupt::requested()) break;
    bar.update(done, name);
    const CaseResult result = verify_attention(shape, options.seed);
    const std::string command = repeat_command(options, name);
    if (!result.passed()) failures.push_back(command);
    if (options.json) {
      print_json_line("verify", {{"operator", "attention"},
                                 {"case", name},
                                 {"dtype", shape.dtype},
                                 {"passed", result.passed()},
                                 {"forward_error", result.forward.error},
                                 {"forward_limit", result.forward.limit},
                                 {"gradient_error", result.backward.error},
                                 {"gradient_limit", result.backward.limit},
                                 {"empty_rows", result.empty_rows_right},
                                 {"same_bits", result.same_bits},
                                 {"command", command}});
    }
    table.add({name, shape.dtype, fmt::format("{:.1e}", result.forward.error),
               fmt::format("{:.1e}", result.forward.limit),
               fmt::format("{:.1e}", result.backward.error),
               fmt::format("{:.1e}", result.backward.limit), verdict(result)});
    bar.update(++done, name);
  }
  bar.finish();
  if (!options.json) {
    print(table.text());
    print(fmt::format("{} of {} cases passed, SIMD level {}\n",
                      done - static_cast<int64_t>(failures.size()), done, kernels::simd_level()));
    for (const std::string& command : failures) print("repeat: " + command + "\n");
  }
  return failures.empty() ? 0 : 1;
}

}  // namespace

void add_verify_command(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App& command = add_command(parent, session,
                                  {.name = "verify",
                                   .summary = "Check dense attention against its fp64 oracle on "
                                              "this machine; exit code 1 if a case fails",
                                   .examples = "nsimplex verify\n"
                                               "NSIMPLEX_SIMD=AVX2 nsimplex verify --json\n"
                                               "nsimplex verify --case order2-window --seed 7",
                                   .acts = {.out = false}},
                                  options, run_verify);
  command.add_option("--case", options->cases, "Check only these cases of bench/cases")
      ->type_name("NAME");
}

}  // namespace nsimplex::cli
