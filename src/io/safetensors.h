// Declares the reading and writing of safetensors files.

#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <map>
#include <string>
#include <vector>

#include "io/safetensors_header.h"

namespace nsimplex::io {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// Contents of a safetensors file: 8 bytes little-endian length of the header, a JSON header with
/// name, dtype, shape and byte range of each tensor, the raw little-endian data. Format:
/// https://github.com/huggingface/safetensors
struct Safetensors {
  std::vector<NamedTensor> tensors;             ///< in the order of their data
  std::map<std::string, std::string> metadata;  ///< the header's "__metadata__", without checksums
  bool checked = false;  ///< after reading: the file had checksums, and they match

  /// The tensor called `name`, or nullptr.
  const at::Tensor* find(const std::string& name) const;
};

/// Reads float64, float32, float16, bfloat16, int64, int32, int16, int8, uint8 and bool tensors.
///
/// The tensors are views of one copy of the file in memory. Writing to one changes neither the file
/// nor another reader, and a change of the file does not affect them. Every length, offset and
/// shape is checked first, as the format demands (ranges without holes or overlaps that fill the
/// file), and so are the checksums if the file has them (io/safetensors_header.h). Any fault throws
/// one InputError with the file's name and the reason.
Safetensors read_safetensors(const std::string& path);

/// Writes the file atomically (AtomicFile). Larger elements come first, so that each tensor is
/// aligned to its dtype, and the data begin at a multiple of 64 bytes. The file has checksums of
/// the header and of every tensor, which detect any flipped bit. The bytes depend only on the
/// arguments. Tensors may have any device and strides. Throws std::invalid_argument for a dtype
/// that the format lacks or a name used twice.
void write_safetensors(const std::string& path, const Safetensors& contents);

/// Torch's dtype for a type of the format.
constexpr c10::ScalarType scalar_type(SafetensorsType type) {
  switch (type) {
    case SafetensorsType::f64:
      return c10::ScalarType::Double;
    case SafetensorsType::f32:
      return c10::ScalarType::Float;
    case SafetensorsType::f16:
      return c10::ScalarType::Half;
    case SafetensorsType::bf16:
      return c10::ScalarType::BFloat16;
    case SafetensorsType::i64:
      return c10::ScalarType::Long;
    case SafetensorsType::i32:
      return c10::ScalarType::Int;
    case SafetensorsType::i16:
      return c10::ScalarType::Short;
    case SafetensorsType::i8:
      return c10::ScalarType::Char;
    case SafetensorsType::u8:
      return c10::ScalarType::Byte;
    case SafetensorsType::boolean:
      break;
  }
  return c10::ScalarType::Bool;
}

}  // namespace nsimplex::io
