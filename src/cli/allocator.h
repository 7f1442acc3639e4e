#pragma once

namespace nsimplex::cli {

/// Memory of tensors stays with the process once it is freed, and takes huge pages from 2 MB on,
/// where system and C library allow. Otherwise every tensor of a step that is larger than 32 MB is
/// cleared by the system page by page: a third of the time of a pass over half a million edges.
///
/// To be called before the first tensor is made. A THP_MEM_ALLOC_ENABLE of the environment, which
/// decides on huge pages, is left as it is.
void keep_freed_memory();

}  // namespace nsimplex::cli
