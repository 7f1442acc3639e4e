// The program nsimplex.

#include "cli/app.h"
#include "cli/lab_program.h"

int main(int argc, char** argv) {
  using namespace nsimplex;
  std::vector<std::string> words = cli::typed_words(argc, argv);
  if (auto of_lab = cli::lab_arguments(words)) return cli::start_lab(std::move(*of_lab));
  cli::keep_freed_memory();
  cli::leave(cli::run(cli::kProduct, std::move(words)));
}
