#pragma once

/// Marks what libnsimplex.so exports; everything else is hidden.
#define NSIMPLEX_API __attribute__((visibility("default")))
