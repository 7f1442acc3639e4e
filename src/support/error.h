// InputError, for sources of the library.

#pragma once

// The error of the library's users, for the sources of the library.
#include <nsimplex/error.h>
