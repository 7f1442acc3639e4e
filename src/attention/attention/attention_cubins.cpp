// Reads a file of compiled GPU kernels: the archive, its index, the programs in it.

#include "attention/attention/attention_cubins.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "support/error.h"

namespace nsimplex::cubins {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kIndex = "index.json", kFormat = "nsimplex cubins 1";

io::Source source_of(const std::string& path, const io::FileBytes& bytes) {
  return {path, {bytes.bytes().data(), bytes.bytes().size()}};
}

const io::ZipEntry* entry_of(const io::Zip& zip, std::string_view name) {
  for (const io::ZipEntry& entry : zip.entries()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

Argument argument_of(const Json& json) {
  Argument argument;
  argument.name = json.at("name").get<std::string>();
  argument.type_name = json.at("type").get<std::string>();
  argument.divisible = json.at("divisible").get<int64_t>();
  if (argument.divisible < 1 || !std::has_single_bit(static_cast<uint64_t>(argument.divisible))) {
    throw std::runtime_error("an argument is divisible by no power of two");
  }
  const std::string& type = argument.type_name;
  if (type.starts_with("*")) {
    argument.type = Argument::Type::address;
  } else if (type == "i32") {
    argument.type = Argument::Type::int32;
  } else if (type == "i64") {
    argument.type = Argument::Type::int64;
  } else if (type == "fp32") {
    argument.type = Argument::Type::float32;
  } else {
    throw std::runtime_error("an argument has the type " + quoted_name(type));
  }
  return argument;
}

Kernel kernel_of(const Json& json) {
  Kernel kernel;
  kernel.kernel = json.at("kernel").get<std::string>();
  kernel.code = json.at("code").get<std::string>();
  kernel.function = json.at("function").get<std::string>();
  kernel.arch = json.at("arch").get<int64_t>();
  kernel.warps = json.at("warps").get<int64_t>();
  kernel.shared = json.at("shared").get<int64_t>();
  kernel.scratch = json.at("scratch").get<int64_t>();
  const bool fits = kernel.warps >= 1 && kernel.warps <= 32 && kernel.shared >= 0 &&
                    kernel.shared <= (1 << 20) && kernel.scratch >= 0 &&
                    kernel.scratch <= (1 << 30);
  if (!fits) throw std::runtime_error("a kernel has no possible size");
  for (const Json& each : json.at("arguments")) kernel.arguments.push_back(argument_of(each));
  return kernel;
}

[[noreturn]] void refuse(const std::string& what) {
  throw std::runtime_error("its programs have " + what);
}

template <class T>
T one_of(const std::string& name, std::initializer_list<std::pair<const char*, T>> names) {
  for (const auto& [known, value] : names) {
    if (name == known) return value;
  }
  refuse("an unknown word " + quoted_name(name));
}

int number_after(std::string_view text, int most) {
  if (text.size() != 1 || text[0] < '0' || text[0] >= '0' + most) {
    refuse("an unknown number " + quoted_name(std::string(text)));
  }
  return text[0] - '0';
}

// The number of an input by its name, for example "keys.0".
int input_of(const std::string& name) {
  for (const auto& [list, place] : {std::pair("keys.", int{keys}), {"values.", int{values}}}) {
    if (name.starts_with(list)) {
      return place + number_after(std::string_view(name).substr(std::strlen(list)), kMostAxes);
    }
  }
  return one_of<int>(name, {{"query", query},
                            {"out", out},
                            {"lse", lse},
                            {"grad_out", grad_out},
                            {"grad_lse", grad_lse}});
}

// "query.size.2", "left.0", "logit_scale".
Formula size_of(const std::string& name) {
  using Kind = Formula::Kind;
  if (name == "logit_scale") return {Kind::logit_scale};
  if (name == "output_scale") return {Kind::output_scale};
  constexpr std::string_view kOffset = ".offset";
  if (name.ends_with(kOffset)) {
    return {Kind::offset, input_of(name.substr(0, name.size() - kOffset.size()))};
  }
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) refuse("an unknown size " + quoted_name(name));
  const std::string owner = name.substr(0, dot);
  const int number = number_after(std::string_view(name).substr(dot + 1), kMostAxes);
  if (owner == "left") return {Kind::left, number};
  if (owner == "right") return {Kind::right, number};
  for (const auto& [suffix, kind] : {std::pair(".size", Kind::size), {".stride", Kind::stride}}) {
    if (owner.ends_with(suffix)) {
      const int input = input_of(owner.substr(0, owner.size() - std::strlen(suffix)));
      const int rank = input == lse || input == grad_lse ? 3 : 4;
      if (number >= rank) refuse("an unknown size " + quoted_name(name));
      return {kind, input, number};
    }
  }
  refuse("an unknown size " + quoted_name(name));
}

int place_in(const Json& json, size_t count) {
  const auto place = json.get<int64_t>();
  if (place < 0 || place >= static_cast<int64_t>(count)) refuse("a place outside a list");
  return static_cast<int>(place);
}

Formula formula_of(const Json& json, size_t before) {
  using Kind = Formula::Kind;
  Formula formula;
  if (json.is_string()) return size_of(json.get<std::string>());
  if (json.is_number_integer()) {
    formula.integer = json.get<int64_t>();
    return formula;
  }
  if (json.is_number()) {
    formula.kind = Kind::real;
    formula.real = json.get<double>();
    return formula;
  }
  formula.kind = one_of<Kind>(json.at(0).get<std::string>(), {{"+", Kind::add},
                                                              {"-", Kind::subtract},
                                                              {"*", Kind::multiply},
                                                              {"//", Kind::divide},
                                                              {"%", Kind::remainder},
                                                              {"<<", Kind::shift},
                                                              {"neg", Kind::negative},
                                                              {"bits", Kind::bits}});
  formula.a = place_in(json.at(1), before);
  if (formula.kind < Kind::negative) formula.b = place_in(json.at(2), before);
  return formula;
}

at::ScalarType type_of(const std::string& name) {
  return one_of<at::ScalarType>(name, {{"bf16", at::kBFloat16},
                                       {"fp16", at::kHalf},
                                       {"fp32", at::kFloat},
                                       {"bfloat16", at::kBFloat16},
                                       {"float16", at::kHalf},
                                       {"float32", at::kFloat},
                                       {"int32", at::kInt}});
}

class ProgramReader {
 public:
  ProgramReader(size_t formulas, const std::vector<Kernel>& kernels)
      : formulas_(formulas), kernels_(kernels) {}

  Program read(const Json& json) {
    Program program;
    program.forward =
        one_of<bool>(json.at("pass").get<std::string>(), {{"forward", true}, {"backward", false}});
    program.arch = json.at("arch").get<int64_t>();
    program.type = type_of(json.at("type").get<std::string>());
    program.order = json.at("order").get<int64_t>();
    program.grad_lse = json.at("grad_lse").get<bool>();
    if (program.order < 1 || program.order > kMostAxes) refuse("an order that cannot be");
    for (const Json& each : json.at("conditions")) {
      using Kind = Condition::Kind;
      const Kind kind = one_of<Kind>(each.at(0).get<std::string>(), {{"<", Kind::less},
                                                                     {"<=", Kind::at_most},
                                                                     {">", Kind::more},
                                                                     {">=", Kind::at_least},
                                                                     {"==", Kind::equal},
                                                                     {"!=", Kind::unequal}});
      program.conditions.push_back({kind, formula(each.at(1)), formula(each.at(2))});
    }
    for (const Json& each : json.at("steps")) program.steps.push_back(step(each, program));
    for (const Json& each : json.at("results")) {
      program.results.push_back(view(each, tensor(each.at("tensor"), program)));
    }
    const auto results = static_cast<size_t>(program.forward ? 2 : 1 + 2 * program.order);
    if (program.results.size() != results) refuse("another number of results");
    return program;
  }

 private:
  int formula(const Json& json) const { return place_in(json, formulas_); }

  // An input of the calls of the program, or a buffer that an earlier step made.
  int tensor(const Json& json, const Program& program) const {
    const auto name = json.get<std::string>();
    constexpr std::string_view kBuffer = "buffer.";
    if (name.starts_with(kBuffer)) {
      for (int n = 0; kInputs + n < program.tensors; ++n) {
        if (name.substr(kBuffer.size()) == std::to_string(n)) return kInputs + n;
      }
      refuse("an unknown buffer " + quoted_name(name));
    }
    const int input = input_of(name);
    const bool of_backward = input >= out && input <= grad_lse;
    const int axis = input >= values ? input - values : input >= keys ? input - keys : 0;
    if ((of_backward && program.forward) || (input == grad_lse && !program.grad_lse) ||
        axis >= program.order) {
      refuse("a tensor that their calls lack: " + quoted_name(name));
    }
    return input;
  }

  View view(const Json& json, int tensor) const {
    View view{tensor, {}, {}};
    for (const Json& each : json.at("sizes")) view.sizes.push_back(formula(each));
    for (const Json& each : json.at("strides")) view.strides.push_back(formula(each));
    if (view.sizes.size() != view.strides.size()) refuse("sizes without strides");
    return view;
  }

  Step step(const Json& json, Program& program) const {
    Step step;
    if (json.contains("new")) {
      step.to = view(json, program.tensors++);
      step.type = type_of(json.at("type").get<std::string>());
      step.zero = json.at("zero").get<bool>();
      return step;
    }
    if (json.contains("copy")) {
      step.kind = Step::Kind::copy;
      const Json &to = json.at("copy").at(0), &from = json.at("copy").at(1);
      step.to = view(to, tensor(to.at("tensor"), program));
      step.from = view(from, tensor(from.at("tensor"), program));
      if (step.to.tensor < kInputs) refuse("a copy onto an input");
      return step;
    }
    step.kind = Step::Kind::launch;
    step.kernel = place_in(json.at("launch"), kernels_.size());
    const Kernel& kernel = kernels_[step.kernel];
    if (kernel.arch != program.arch) refuse("a kernel for another device");
    for (size_t d = 0; d < 3; ++d) step.grid[d] = formula(json.at("grid").at(d));
    const Json& arguments = json.at("arguments");
    if (arguments.size() != kernel.arguments.size()) refuse("another number of arguments");
    for (size_t n = 0; n < arguments.size(); ++n) {
      const bool address = kernel.arguments[n].type == Argument::Type::address;
      step.arguments.push_back(address ? tensor(arguments.at(n), program)
                                       : formula(arguments.at(n)));
    }
    return step;
  }

  size_t formulas_;
  const std::vector<Kernel>& kernels_;
};

}  // namespace

File::File(const std::string& path) : bytes_(path), zip_(source_of(path, bytes_)) {
  const io::Source source = source_of(path, bytes_);
  const io::ZipEntry* const index = entry_of(zip_, kIndex);
  if (index == nullptr) source.fail("expected a file of tools/build_cubins, which has index.json");
  const std::vector<uint8_t> text = zip_.contents(*index);
  try {
    const Json json = Json::parse(text.begin(), text.end());
    if (json.at("format") != kFormat) {
      throw std::runtime_error("expected the format '" + std::string(kFormat) + "'");
    }
    for (const Json& each : json.at("kernels")) kernels_.push_back(kernel_of(each));
    for (const Json& each : json.at("formulas")) {
      index_.formulas.push_back(formula_of(each, index_.formulas.size()));
    }
    ProgramReader reader(index_.formulas.size(), kernels_);
    for (const Json& each : json.at("programs")) index_.programs.push_back(reader.read(each));
  } catch (const Json::exception&) {
    source.fail("its index.json is damaged or not one of tools/build_cubins");
  } catch (const std::runtime_error& error) {
    source.fail(std::string("index.json: ") + error.what());
  }
  for (const Kernel& kernel : kernels_) {
    if (entry_of(zip_, kernel.code) == nullptr) {
      source.fail("expected an entry " + quoted_name(kernel.code) + ", which index.json names");
    }
  }
}

std::vector<uint8_t> File::code(const Kernel& kernel) const {
  return zip_.contents(*entry_of(zip_, kernel.code));
}

}  // namespace nsimplex::cubins
