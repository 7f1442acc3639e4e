#include "cli/app.h"

int main(int argc, char** argv) { return nsimplex::cli::run(argc, argv); }
