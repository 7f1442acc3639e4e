// Catches the error that the library throws by its public name.
#include <nsimplex/causal_pipeline.h>
#include <nsimplex/error.h>

#include <cstring>

int main() {
  try {
    nsimplex::CausalPipeline::load("/nonexistent");
  } catch (const nsimplex::InputError& error) {
    return std::strstr(error.what(), "/nonexistent") != nullptr ? 0 : 1;
  }
  return 2;
}
