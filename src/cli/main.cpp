#include "cli/app.h"

int main(int argc, char** argv) {
  nsimplex::cli::keep_freed_memory();
  return nsimplex::cli::run(argc, argv);
}
