#include "lab/experiments.h"

int main(int argc, char** argv) {
  nsimplex::cli::keep_freed_memory();
  return nsimplex::cli::run(nsimplex::lab::kProgram, {argv, static_cast<size_t>(argc)});
}
