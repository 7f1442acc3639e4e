// usage: killed_training FOLDER STAGE: trains a small model in FOLDER and kills itself, as `kill
// -9` would, when the STAGE-th stage of writing a file is reached (counted from 0 over all files).
// Ends with 0 when training ends before that.

#include <ATen/Parallel.h>

#include <csignal>
#include <cstdlib>

#include "io/output_file.h"
#include "train/small_run.h"

int main(int, char** argv) {
  int stages_left = std::atoi(argv[2]);
  nsimplex::io::set_write_observer([&](nsimplex::io::WriteStage, const std::string&) {
    if (stages_left-- == 0) ::raise(SIGKILL);
  });
  at::set_num_threads(1);  // as the run it is compared with
  nsimplex::test::train_in(argv[1]);
}
