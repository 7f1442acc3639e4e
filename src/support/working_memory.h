// Declares the memory of a kernel for one call.

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace nsimplex {

/// Uninitialised memory of a kernel for one call, as a tensor of bytes.
///
/// Memory of several MiB is new to the process in every call, because the allocator returns it to
/// the system at the end. Linux then clears it page by page when it is first written to. This
/// function asks for pages of 2 MiB. There are fewer of them, and they need fewer entries of the
/// processor's table of addresses. Systems that have none, or whose administrator turned them off
/// (/sys/kernel/mm/transparent_hugepage/enabled), give pages of the usual size.
at::Tensor working_memory(int64_t bytes);

}  // namespace nsimplex
