#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "io/input_file.h"

namespace nsimplex::io {

/// Text or bytes as a source called "f". They must live as long as it.
inline Source source_of(const std::string& bytes) {
  return {"f", {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}};
}

template <class T>
std::string raw(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// An npy file. `shape` is a Python tuple.
std::string npy_file(const std::string& descr, const std::string& shape, const std::string& data,
                     bool fortran = false, int version = 1);

/// A zip archive of names and contents.
std::string zip_file(const std::vector<std::pair<std::string, std::string>>& files, bool deflate);

}  // namespace nsimplex::io
