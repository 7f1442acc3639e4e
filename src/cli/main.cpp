#include "cli/app.h"
#include "cli/lab_program.h"

int main(int argc, char** argv) {
  using namespace nsimplex;
  const std::span<char* const> arguments(argv, static_cast<size_t>(argc));
  if (auto of_lab = cli::lab_arguments(arguments)) return cli::start_lab(std::move(*of_lab));
  cli::keep_freed_memory();
  return cli::run(cli::kProduct, arguments);
}
