#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io/input_file.h"
#include "support/error.h"

/// Fed with bytes by libFuzzer, or by replay.cc with the files of tests/fuzz/corpus.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace nsimplex::fuzz {

/// Calls `read` with the bytes as a file: it returns, or throws an InputError of one printable line.
/// Whatever else it does is found by the sanitizers and the limits of time and memory.
template <class Read>
void try_read(std::span<const uint8_t> bytes, Read&& read) {
  try {
    read(io::Source{"f", bytes});
  } catch (const InputError& error) {
    if (printable(error.what()) != error.what()) __builtin_trap();
  }
}

}  // namespace nsimplex::fuzz
