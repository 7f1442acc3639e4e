#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace nsimplex::io {

enum class SafetensorsType { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

struct SafetensorsDtype {
  std::string_view name;
  SafetensorsType type;
  uint64_t width;  ///< bytes of an element
};

inline constexpr std::array<SafetensorsDtype, 10> kSafetensorsDtypes = {{
    {"F64", SafetensorsType::f64, 8},
    {"F32", SafetensorsType::f32, 4},
    {"F16", SafetensorsType::f16, 2},
    {"BF16", SafetensorsType::bf16, 2},
    {"I64", SafetensorsType::i64, 8},
    {"I32", SafetensorsType::i32, 4},
    {"I16", SafetensorsType::i16, 2},
    {"I8", SafetensorsType::i8, 1},
    {"U8", SafetensorsType::u8, 1},
    {"BOOL", SafetensorsType::boolean, 1},
}};

inline constexpr size_t kLengthBytes = 8;          ///< of the header's length at the file's start
inline constexpr size_t kMaxHeader = 100'000'000;  ///< the format's own limit
inline constexpr std::string_view kMetadata = "__metadata__";

}  // namespace nsimplex::io
