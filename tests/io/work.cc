#include "io/work.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

int64_t steps = 0, taken = 0, most_taken = 0;

void count(size_t bytes) { steps += static_cast<int64_t>(bytes); }

}  // namespace

extern "C" {

// The compiler calls this in every basic block.
void __sanitizer_cov_trace_pc() { ++steps; }

void* __real_memchr(const void* bytes, int byte, size_t size);
void* __wrap_memchr(const void* bytes, int byte, size_t size) {
  void* const found = __real_memchr(bytes, byte, size);
  const auto* const end = static_cast<const char*>(found);
  count(found == nullptr ? size : end - static_cast<const char*>(bytes));
  return found;
}

int __real_memcmp(const void* a, const void* b, size_t size);
int __wrap_memcmp(const void* a, const void* b, size_t size) {
  count(size);
  return __real_memcmp(a, b, size);
}

void* __real_memcpy(void* to, const void* from, size_t size);
void* __wrap_memcpy(void* to, const void* from, size_t size) {
  count(size);
  return __real_memcpy(to, from, size);
}

void* __real_memmove(void* to, const void* from, size_t size);
void* __wrap_memmove(void* to, const void* from, size_t size) {
  count(size);
  return __real_memmove(to, from, size);
}

void* __real_memset(void* to, int byte, size_t size);
void* __wrap_memset(void* to, int byte, size_t size) {
  count(size);
  return __real_memset(to, byte, size);
}

}  // extern "C"

void* operator new(size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  taken += static_cast<int64_t>(malloc_usable_size(memory));
  most_taken = std::max(most_taken, taken);
  return memory;
}

void operator delete(void* memory) noexcept {
  if (memory != nullptr) taken -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, size_t /*size*/) noexcept { operator delete(memory); }

namespace nsimplex::io {

Work work_of(const std::function<void()>& call) {
  const int64_t before = taken;
  steps = 0;
  most_taken = taken;
  call();
  return {steps, most_taken - before};
}

}  // namespace nsimplex::io
