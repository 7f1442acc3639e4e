#pragma once

#include <c10/core/ScalarType.h>

#include <array>
#include <cstddef>
#include <string_view>

namespace nsimplex::io {

struct SafetensorsDtype {
  std::string_view name;
  c10::ScalarType type;
};

inline constexpr std::array<SafetensorsDtype, 10> kSafetensorsDtypes = {{
    {"F64", c10::ScalarType::Double},
    {"F32", c10::ScalarType::Float},
    {"F16", c10::ScalarType::Half},
    {"BF16", c10::ScalarType::BFloat16},
    {"I64", c10::ScalarType::Long},
    {"I32", c10::ScalarType::Int},
    {"I16", c10::ScalarType::Short},
    {"I8", c10::ScalarType::Char},
    {"U8", c10::ScalarType::Byte},
    {"BOOL", c10::ScalarType::Bool},
}};

inline constexpr size_t kLengthBytes = 8;          ///< of the header's length at the file's start
inline constexpr size_t kMaxHeader = 100'000'000;  ///< the format's own limit
inline constexpr std::string_view kMetadata = "__metadata__";

}  // namespace nsimplex::io
