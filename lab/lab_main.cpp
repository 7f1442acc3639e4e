#include "lab/experiments.h"

int main(int argc, char** argv) {
  nsimplex::cli::keep_freed_memory();
  return nsimplex::cli::run(nsimplex::lab::kProgram, nsimplex::cli::typed_words(argc, argv));
}
