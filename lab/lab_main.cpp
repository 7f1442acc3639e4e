// The program nsimplex-lab.

#include "lab/experiments.h"

int main(int argc, char** argv) {
  using namespace nsimplex;
  cli::keep_freed_memory();
  cli::leave(cli::run(lab::kProgram, cli::typed_words(argc, argv)));
}
