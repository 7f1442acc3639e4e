#pragma once

#include <c10/util/StringUtil.h>

#include "support/error.h"

namespace nsimplex::detail {

/// Throws InputError with the concatenated parts unless `ok`.
template <class... Parts>
void require(bool ok, const Parts&... parts) {
  if (!ok) throw InputError(c10::str(parts...));
}

}  // namespace nsimplex::detail
