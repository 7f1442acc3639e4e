#pragma once

#include "cli/app.h"

/// The laboratory: experiments that test what the papers claim, each a command of nsimplex-lab.
/// It is built on the library and the product's commands, and nothing below it knows it.
namespace nsimplex::lab {

/// The program nsimplex-lab, which `nsimplex lab` runs.
extern const cli::Program kProgram;

}  // namespace nsimplex::lab
