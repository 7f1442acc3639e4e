#pragma once

#include <c10/core/ScalarType.h>

#include "io/safetensors_format.h"

namespace nsimplex::io {

/// The dtype of Torch that a type of the format is.
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
