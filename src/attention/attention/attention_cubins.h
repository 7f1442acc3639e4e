// Declares the file of compiled GPU kernels and the programs in it.

#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/input_file.h"
#include "io/npz.h"

// GPU kernels that tools/build_cubins compiled ahead of time, and their launch through CUDA's
// driver, which is found when the program runs. Nothing of CUDA is needed to compile this.
//
// The file is a zip archive. Its first entry, index.json, is an object with
//
//   format    "nsimplex cubins 1"
//   compiler  what made the kernels, for people
//   formulas  a list of numbers, names of sizes (query.size.2, keys.0.stride.1, lse.offset, left.0,
//             right.0, logit_scale, output_scale) and lists [operation, places in this list..]; operations
//             are + - * // % << neg bits, and // rounds down
//   programs  a list of objects, each a way to carry out calls (tools/cubin_programs.py):
//     pass, arch, type, order, grad_lse
//                which calls: forward or backward; bf16, fp16 or fp32; whether lse has a gradient
//     conditions [comparison, formula, formula], all true for the calls that the program serves
//     steps      in order. {new, sizes, strides, type, zero} allocates a buffer, {copy: [to, from]}
//                copies, and {launch, grid, arguments} launches a kernel: its place in `kernels`,
//                three formulas, and a formula or a tensor for each argument. Tensors are query,
//                keys.0, values.0, out, lse, grad_out, grad_lse and buffer.0
//     results    what the call returns
//                A copy and a result are views of tensors: {tensor, sizes, strides}
//   kernels   a list of objects, one for each compiled kernel:
//     kernel     name of the kernel's source
//     code       the archive's entry that holds its machine code (an ELF file for `arch`)
//     function   its name there
//     arch       ten times the compute capability: 80, 90, 100
//     constants  what it was compiled for, for people
//     arguments  in order, each {name, type, divisible}: `type` is *bf16, *fp16, *fp32, i32, i64 or
//                fp32, and `divisible` a power of two that divides the address or the number
//     warps      of 32 threads of a program
//     shared     bytes of shared memory of a program
//     scratch    bytes of global memory of a program, which two more pointers behind the arguments
//                lead to (the second is the profiler's, and null)

namespace nsimplex::cubins {

/// The functions of CUDA's driver that a launch needs. Each returns 0 on success.
struct Driver {
  int (*init)(unsigned flags);
  int (*device)(int* device, int ordinal);
  int (*attribute)(int* value, int attribute, int device);
  int (*retain_context)(void** context, int device);
  int (*set_context)(void* context);
  int (*load)(void** module, const void* image);
  int (*function)(void** function, void* module, const char* name);
  int (*set_attribute)(void* function, int attribute, int value);
  int (*launch)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                void** arguments, void** extra);
  int (*error_text)(int error, const char** text);

  /// From libcuda.so.1; null if there is none.
  static const Driver* find();
};

/// The reason why the file does not support a call. The composite computes the call and warns.
struct Unserved : std::runtime_error {
  using runtime_error::runtime_error;
};

/// An argument: a number or an address.
using Value = std::variant<int64_t, double, const void*>;

struct Argument {
  enum class Type { address, int32, int64, float32 };
  std::string name, type_name;
  Type type = Type::address;
  int64_t divisible = 1;
};

struct Kernel {
  std::string kernel, code, function;
  int64_t arch = 0, warps = 0, shared = 0, scratch = 0;
  std::vector<Argument> arguments;
};

inline constexpr int kMostAxes = 8;

/// Tensors by number: the inputs of a call, then the buffers of the program.
enum Place : int { query, out, lse, grad_out, grad_lse, keys, values = keys + kMostAxes };
inline constexpr int kInputs = Place::values + kMostAxes;

struct Formula {
  enum class Kind {
    integer,
    real,
    size,
    stride,
    offset,
    left,
    right,
    logit_scale,
    output_scale,
    add,
    subtract,
    multiply,
    divide,
    remainder,
    shift,
    negative,
    bits
  };
  Kind kind = Kind::integer;
  int a = 0, b = 0;  // places of formulas; a tensor and its dimension; an axis
  int64_t integer = 0;
  double real = 0;
};

struct Condition {
  enum class Kind { less, at_most, more, at_least, equal, unequal };
  Kind kind = Kind::equal;
  int a = 0, b = 0;
};

/// A tensor with sizes and strides, which are formulas.
struct View {
  int tensor = 0;
  std::vector<int> sizes, strides;
};

struct Step {
  enum class Kind { allocate, copy, launch };
  Kind kind = Kind::allocate;
  View to, from;
  at::ScalarType type = at::kFloat;
  bool zero = false;
  int kernel = 0;
  std::array<int, 3> grid{};
  std::vector<int> arguments;  // tensors for addresses, otherwise formulas
};

struct Program {
  bool forward = true, grad_lse = false;
  int64_t arch = 0, order = 0;
  at::ScalarType type = at::kFloat;
  std::vector<Condition> conditions;
  std::vector<Step> steps;
  std::vector<View> results;
  int tensors = kInputs;  // including the buffers
};

/// The programs of a file, and the formulas that they consist of.
struct Index {
  std::vector<Formula> formulas;
  std::vector<Program> programs;
};

/// The compiled kernels of a file. A kernel is loaded onto a device at its first launch.
class File {
 public:
  /// Throws InputError if the file is missing, damaged or of another kind.
  explicit File(const std::string& path);

  const std::vector<Kernel>& kernels() const { return kernels_; }
  const Index& index() const { return index_; }

  /// The machine code of a kernel.
  std::vector<uint8_t> code(const Kernel& kernel) const;

  /// Ten times the compute capability of the kernels for this device.
  int64_t arch_of(const Driver& driver, const c10::Device& device) const;

  /// Runs the kernel on the current stream of the device. Throws Unserved if an argument does not
  /// have the type or the divisor for which the kernel was compiled, and TORCH_CHECK's error if the
  /// driver fails.
  void launch(const Driver& driver, const Kernel& kernel, const c10::Device& device,
              std::array<int64_t, 3> grid, const std::vector<Value>& arguments);

 private:
  void* function_on(const Driver& driver, const Kernel& kernel, int ordinal);

  io::FileBytes bytes_;
  io::Zip zip_;
  std::vector<Kernel> kernels_;
  Index index_;
  std::mutex mutex_;
  std::map<int, void*> contexts_;
  std::map<std::pair<const Kernel*, int>, void*> functions_;
};

/// A checked call of the product form with softmax whose keys are limited by windows only (a causal
/// call has a right window of 0).
struct PlainCall {
  at::Tensor query;                      ///< [B, Hq, Tq, D]
  std::vector<at::Tensor> keys, values;  ///< N of [B, Hk, T_m, D or Dv]
  std::vector<int64_t> left, right;      ///< N; -1: unbounded
  double logit_scale = 1.0, output_scale = 1.0;
};

/// The further inputs of the backward pass. `grad_lse` may be undefined.
struct PlainGrad {
  at::Tensor out, lse, grad_out, grad_lse;
};

/// Computes calls by the programs of a file. Throws Unserved if it has none for a call.
class Launcher {
 public:
  Launcher(File& file, const Driver& driver) : file_(file), driver_(driver) {}

  /// out and lse.
  std::vector<at::Tensor> forward(const PlainCall& call) const { return run(call, nullptr); }

  /// Gradients of the query, the keys and the values.
  std::vector<at::Tensor> backward(const PlainCall& call, const PlainGrad& grad) const {
    return run(call, &grad);
  }

 private:
  std::vector<at::Tensor> run(const PlainCall& call, const PlainGrad* grad) const;

  File& file_;
  const Driver& driver_;
};

}  // namespace nsimplex::cubins
