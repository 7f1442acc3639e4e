// Catches the error that the library throws by its public name.
#include <nsimplex/causal_pipeline.h>
#include <nsimplex/error.h>

#include <cstring>
#include <string>

int main(int, char** words) {
  const std::string absent = std::string(words[0]) + "/below a file";  // nothing is
  try {
    nsimplex::CausalPipeline::load(absent);
  } catch (const nsimplex::InputError& error) {
    return std::strstr(error.what(), "/below a file") != nullptr ? 0 : 1;
  }
  return 2;
}
