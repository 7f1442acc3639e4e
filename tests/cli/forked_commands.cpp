// usage: forked_commands MEGABYTES SECONDS: runs the commands of standard input, each in a fork that
// may take so much more memory and so much processor time. A line has the words of a command as a
// list of JSON. The answer is a line of JSON: exit code, signal, standard output and error.
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/lab_program.h"
#include "cli/process.h"
#include "lab/experiments.h"

namespace nsimplex::cli {
namespace {

rlim_t used_memory() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

void limit(int resource, rlim_t most) {
  const rlimit both{most, most};
  setrlimit(resource, &both);
}

int serve(rlim_t bytes, rlim_t seconds) {
  for (std::string line; std::getline(std::cin, line);) {
    const auto words = nlohmann::json::parse(line).get<std::vector<std::string>>();
    const testing::Finished done =
        testing::Process([&] {
          limit(RLIMIT_AS, used_memory() + bytes);
          limit(RLIMIT_CPU, seconds);
          const auto of_lab = lab_arguments(words);
          return of_lab ? run(lab::kProgram, *of_lab) : run(kProduct, words);
        }).wait();
    const nlohmann::json answer{
        {"code", done.code}, {"signal", done.signal}, {"out", done.out}, {"err", done.err}};
    std::cout << answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace nsimplex::cli

int main(int count, char** arguments) {
  if (count != 3) return 2;
  return nsimplex::cli::serve(std::stoull(arguments[1]) << 20, std::stoull(arguments[2]));
}
