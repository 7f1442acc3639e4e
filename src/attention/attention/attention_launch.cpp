// Computes calls by the programs of a file of compiled GPU kernels. It evaluates the numbers that
// the host code in Python used, checks its conditions, and repeats its steps through CUDA's driver.

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include "attention/attention/attention_cubins.h"

namespace nsimplex::cubins {
namespace {

using at::Tensor;

// Values of the driver's enumerations (cuda.h), which never change.
constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
constexpr int kMostShared = 97;          // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
constexpr int kDynamicSharedBytes = 8;   // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr int64_t kSharedWithoutAsking = 48 << 10;  // more requires the attribute

void check(const Driver& driver, int error, const char* what) {
  if (error == 0) return;
  const char* text = nullptr;
  if (driver.error_text(error, &text) != 0 || text == nullptr) text = "unknown";
  TORCH_CHECK(false, "[attention] CUDA driver: ", what, " failed: error ", error, ", ", text);
}

// The bits of an argument as the driver reads them, in the first bytes.
uint64_t bits_of(const Kernel& kernel, const Argument& argument, const Value& value) {
  const auto refuse = [&](const std::string& why) {
    throw Unserved("the compiled kernel " + kernel.kernel + " wants " + argument.name + why);
  };
  uint64_t bits = 0;
  if (argument.type == Argument::Type::float32 && !std::holds_alternative<const void*>(value)) {
    const double* const real = std::get_if<double>(&value);
    const auto number =
        static_cast<float>(real != nullptr ? *real : static_cast<double>(std::get<int64_t>(value)));
    std::memcpy(&bits, &number, sizeof number);
    return bits;
  }
  if (argument.type == Argument::Type::address && std::holds_alternative<const void*>(value)) {
    bits = reinterpret_cast<uintptr_t>(std::get<const void*>(value));
  } else if (argument.type != Argument::Type::address && argument.type != Argument::Type::float32 &&
             std::holds_alternative<int64_t>(value)) {
    const int64_t number = std::get<int64_t>(value);
    if (argument.type == Argument::Type::int32 && number != static_cast<int32_t>(number)) {
      refuse(" to fit 32 bits");
    }
    bits = static_cast<uint64_t>(number);
  } else {
    refuse(" as " + argument.type_name);
  }
  // A divisor is a power of two, so the bits of a negative number suffice.
  if (bits % static_cast<uint64_t>(argument.divisible) != 0) {
    refuse(" to be a multiple of " + std::to_string(argument.divisible));
  }
  return bits;
}

}  // namespace

const Driver* Driver::find() {
  static const Driver* const found = []() -> const Driver* {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    static Driver driver;
    bool complete = true;
    const auto take = [&](auto& function, const char* name) {
      void* const symbol = dlsym(library, name);
      complete = complete && symbol != nullptr;
      function = reinterpret_cast<std::decay_t<decltype(function)>>(symbol);
    };
    take(driver.init, "cuInit");
    take(driver.device, "cuDeviceGet");
    take(driver.attribute, "cuDeviceGetAttribute");
    take(driver.retain_context, "cuDevicePrimaryCtxRetain");
    take(driver.set_context, "cuCtxSetCurrent");
    take(driver.load, "cuModuleLoadData");
    take(driver.function, "cuModuleGetFunction");
    take(driver.set_attribute, "cuFuncSetAttribute");
    take(driver.launch, "cuLaunchKernel");
    take(driver.error_text, "cuGetErrorString");
    return complete && driver.init(0) == 0 ? &driver : nullptr;
  }();
  return found;
}

int64_t File::arch_of(const Driver& driver, const c10::Device& device) const {
  int handle = 0, major = 0, minor = 0;
  check(driver, driver.device(&handle, std::max<int>(device.index(), 0)), "cuDeviceGet");
  check(driver, driver.attribute(&major, kMajor, handle), "cuDeviceGetAttribute");
  check(driver, driver.attribute(&minor, kMinor, handle), "cuDeviceGetAttribute");
  // Code for 8.0 runs on all of 8.x. From 9.0 on the kernels use instructions of one capability.
  const int64_t arch = major == 8 ? 80 : 10 * major + minor;
  if (std::ranges::find(kernels_, arch, &Kernel::arch) == kernels_.end()) {
    throw Unserved("the file of compiled kernels has none for compute capability " +
                   std::to_string(major) + "." + std::to_string(minor));
  }
  return arch;
}

// Makes the device's context current, which torch uses too, and returns the kernel in it.
void* File::function_on(const Driver& driver, const Kernel& kernel, int ordinal) {
  const std::lock_guard lock(mutex_);
  void*& context = contexts_[ordinal];
  if (context == nullptr) {
    int handle = 0;
    check(driver, driver.device(&handle, ordinal), "cuDeviceGet");
    check(driver, driver.retain_context(&context, handle), "cuDevicePrimaryCtxRetain");
  }
  check(driver, driver.set_context(context), "cuCtxSetCurrent");
  void*& function = functions_[{&kernel, ordinal}];
  if (function == nullptr) {
    int handle = 0, most = 0;
    check(driver, driver.device(&handle, ordinal), "cuDeviceGet");
    check(driver, driver.attribute(&most, kMostShared, handle), "cuDeviceGetAttribute");
    if (kernel.shared > most) {
      throw Unserved("the compiled kernel takes " + std::to_string(kernel.shared) +
                     " bytes of shared memory, and this device has " + std::to_string(most));
    }
    const std::vector<uint8_t> image = code(kernel);
    void* module = nullptr;
    void* loaded = nullptr;
    check(driver, driver.load(&module, image.data()), "cuModuleLoadData");
    check(driver, driver.function(&loaded, module, kernel.function.c_str()), "cuModuleGetFunction");
    if (kernel.shared > kSharedWithoutAsking) {
      check(driver,
            driver.set_attribute(loaded, kDynamicSharedBytes, static_cast<int>(kernel.shared)),
            "cuFuncSetAttribute");
    }
    function = loaded;
  }
  return function;
}

void File::launch(const Driver& driver, const Kernel& kernel, const c10::Device& device,
                  std::array<int64_t, 3> grid, const std::vector<Value>& arguments) {
  if (std::ranges::min(grid) <= 0) return;
  if (grid[0] > std::numeric_limits<int32_t>::max() || grid[1] > 65535 || grid[2] > 65535) {
    throw Unserved("the grid is larger than a launch may have");
  }
  const c10::DeviceGuard guard(device);
  std::vector<uint64_t> bits;
  bits.reserve(kernel.arguments.size() + 2);
  for (size_t at = 0; at < kernel.arguments.size(); ++at) {
    bits.push_back(bits_of(kernel, kernel.arguments[at], arguments.at(at)));
  }
  at::Tensor scratch;
  if (kernel.scratch > 0) {
    scratch = at::empty({kernel.scratch * grid[0] * grid[1] * grid[2]},
                        at::TensorOptions().dtype(at::kByte).device(device));
  }
  bits.push_back(scratch.defined() ? reinterpret_cast<uintptr_t>(scratch.mutable_data_ptr()) : 0);
  bits.push_back(0);
  std::vector<void*> places;
  places.reserve(bits.size());
  for (uint64_t& each : bits) places.push_back(&each);
  const int ordinal = std::max<int>(device.index(), 0);
  void* const function = function_on(driver, kernel, ordinal);
  void* const stream =
      device.is_cpu()  // only with the driver of a test
          ? nullptr
          : c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
  check(driver,
        driver.launch(function, static_cast<unsigned>(grid[0]), static_cast<unsigned>(grid[1]),
                      static_cast<unsigned>(grid[2]), static_cast<unsigned>(32 * kernel.warps), 1,
                      1, static_cast<unsigned>(kernel.shared), stream, places.data(), nullptr),
        "cuLaunchKernel");
}

namespace {

// An integer, or a real number where `is_real`.
struct Number {
  bool is_real = false;
  int64_t integer = 0;
  double real = 0;

  double wide() const { return is_real ? real : static_cast<double>(integer); }
};

// The numbers of one call. Each formula is evaluated once, on request.
class Numbers {
 public:
  Numbers(const Index& index, const PlainCall& call, const std::vector<Tensor>& tensors)
      : index_(index), call_(call), tensors_(tensors), known_(index.formulas.size()) {}

  const Number& at(int place) {
    std::optional<Number>& known = known_[place];
    if (!known) known = evaluate(index_.formulas[place]);
    return *known;
  }

  int64_t integer(int place) {
    const Number& number = at(place);
    if (number.is_real) throw Unserved("a program has a real number in place of an integer");
    return number.integer;
  }

  bool holds(const Condition& condition) {
    const Number &a = at(condition.a), &b = at(condition.b);
    const auto compared = a.is_real || b.is_real ? a.wide() <=> b.wide()
                                                 : std::partial_ordering(a.integer <=> b.integer);
    switch (condition.kind) {
      case Condition::Kind::less:
        return compared < 0;
      case Condition::Kind::at_most:
        return compared <= 0;
      case Condition::Kind::more:
        return compared > 0;
      case Condition::Kind::at_least:
        return compared >= 0;
      case Condition::Kind::equal:
        return compared == 0;
      case Condition::Kind::unequal:
        return compared != 0;
    }
    return false;
  }

 private:
  Number evaluate(const Formula& formula) {
    using Kind = Formula::Kind;
    const auto whole = [](int64_t value) { return Number{false, value, 0}; };
    const auto real = [](double value) { return Number{true, 0, value}; };
    switch (formula.kind) {
      case Kind::integer:
        return whole(formula.integer);
      case Kind::real:
        return real(formula.real);
      case Kind::size:
        return whole(tensor(formula).size(formula.b));
      case Kind::stride:
        return whole(tensor(formula).stride(formula.b));
      case Kind::offset:
        return whole(tensor(formula).storage_offset());
      case Kind::left:
        return whole(call_.left.at(formula.a));
      case Kind::right:
        return whole(call_.right.at(formula.a));
      case Kind::logit_scale:
        return real(call_.logit_scale);
      case Kind::output_scale:
        return real(call_.output_scale);
      default:
        break;
    }
    const Number a = at(formula.a);
    const Number b = formula.kind < Kind::negative ? at(formula.b) : Number{};
    if (a.is_real || b.is_real) {
      switch (formula.kind) {
        case Kind::add:
          return real(a.wide() + b.wide());
        case Kind::subtract:
          return real(a.wide() - b.wide());
        case Kind::multiply:
          return real(a.wide() * b.wide());
        case Kind::negative:
          return real(-a.wide());
        default:
          throw Unserved("a program asks for an operation of integers");
      }
    }
    // Sums and products wrap around, so that a file with extreme numbers does no harm here.
    const auto x = static_cast<uint64_t>(a.integer), y = static_cast<uint64_t>(b.integer);
    const bool divides = formula.kind == Kind::divide || formula.kind == Kind::remainder;
    if (divides && b.integer <= 0) throw Unserved("a program divides by a number below 1");
    const int64_t rest = divides ? (a.integer % b.integer + b.integer) % b.integer : 0;
    switch (formula.kind) {
      case Kind::add:
        return whole(static_cast<int64_t>(x + y));
      case Kind::subtract:
        return whole(static_cast<int64_t>(x - y));
      case Kind::multiply:
        return whole(static_cast<int64_t>(x * y));
      case Kind::divide:
        return whole((a.integer - rest) / b.integer);
      case Kind::remainder:
        return whole(rest);
      case Kind::shift:
        if (y >= 63) throw Unserved("a program shifts too far");
        return whole(static_cast<int64_t>(x << y));
      case Kind::negative:
        return whole(static_cast<int64_t>(0 - x));
      default:
        return whole(std::bit_width(a.integer < 0 ? 0 - x : x));
    }
  }

  const Tensor& tensor(const Formula& formula) const {
    const Tensor& tensor = tensors_[formula.a];
    if (!tensor.defined()) throw Unserved("a program asks for a tensor that the call lacks");
    return tensor;
  }

  const Index& index_;
  const PlainCall& call_;
  const std::vector<Tensor>& tensors_;
  std::vector<std::optional<Number>> known_;
};

at::TensorOptions on_device(at::ScalarType type, const c10::Device& device) {
  return at::TensorOptions().dtype(type).device(device);
}

}  // namespace

// The first program for such calls whose conditions all hold.
static const Program* program_for(const File& file, const PlainCall& call, const PlainGrad* grad,
                                  int64_t arch, Numbers& numbers) {
  const bool grad_lse = grad != nullptr && grad->grad_lse.defined();
  for (const Program& each : file.index().programs) {
    if (each.forward == (grad == nullptr) && each.arch == arch && each.grad_lse == grad_lse &&
        each.order == static_cast<int64_t>(call.keys.size()) &&
        each.type == call.query.scalar_type() &&
        std::ranges::all_of(each.conditions,
                            [&](const Condition& condition) { return numbers.holds(condition); })) {
      return &each;
    }
  }
  return nullptr;
}

std::vector<Tensor> Launcher::run(const PlainCall& call, const PlainGrad* grad) const {
  const size_t order = call.keys.size();
  if (order > kMostAxes) throw Unserved("the compiled kernels take fewer key axes");
  const c10::Device device = call.query.device();
  const int64_t arch = file_.arch_of(driver_, device);
  std::vector<Tensor> tensors(kInputs);
  tensors[query] = call.query;
  for (size_t m = 0; m < order; ++m) {
    tensors[keys + m] = call.keys[m];
    tensors[values + m] = call.values[m];
  }
  if (grad != nullptr) {
    tensors[out] = grad->out, tensors[lse] = grad->lse;
    tensors[grad_out] = grad->grad_out, tensors[grad_lse] = grad->grad_lse;
  }
  Numbers numbers(file_.index(), call, tensors);
  const Program* const program = program_for(file_, call, grad, arch, numbers);
  if (program == nullptr) {
    throw Unserved("the file of compiled kernels has none for these sizes, types and windows");
  }
  const auto integers = [&](const std::vector<int>& places) {
    std::vector<int64_t> result;
    for (const int place : places) result.push_back(numbers.integer(place));
    return result;
  };
  const auto seen = [&](const View& view) {
    const std::vector<int64_t> sizes = integers(view.sizes), strides = integers(view.strides);
    const Tensor& tensor = tensors[view.tensor];
    return tensor.sizes() == sizes && tensor.strides() == strides
               ? tensor
               : tensor.as_strided(sizes, strides);
  };
  for (const Step& step : program->steps) {
    if (step.kind == Step::Kind::allocate) {
      tensors.push_back(at::empty_strided(integers(step.to.sizes), integers(step.to.strides),
                                          on_device(step.type, device)));
      if (step.zero) tensors.back().zero_();
    } else if (step.kind == Step::Kind::copy) {
      seen(step.to).copy_(seen(step.from));
    } else {
      const Kernel& kernel = file_.kernels()[step.kernel];
      std::vector<Value> arguments;
      for (size_t n = 0; n < step.arguments.size(); ++n) {
        const int place = step.arguments[n];
        if (kernel.arguments[n].type == Argument::Type::address) {
          arguments.emplace_back(static_cast<const void*>(tensors[place].const_data_ptr()));
        } else if (const Number& number = numbers.at(place); number.is_real) {
          arguments.emplace_back(number.real);
        } else {
          arguments.emplace_back(number.integer);
        }
      }
      file_.launch(driver_, kernel, device,
                   {numbers.integer(step.grid[0]), numbers.integer(step.grid[1]),
                    numbers.integer(step.grid[2])},
                   arguments);
    }
  }
  std::vector<Tensor> results;
  for (const View& view : program->results) results.push_back(seen(view));
  return results;
}

}  // namespace nsimplex::cubins
