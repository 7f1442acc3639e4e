// Refers to no symbol of the library: only its operators' registration makes this succeed.
#include <ATen/core/dispatch/Dispatcher.h>

int main() {
  return c10::Dispatcher::singleton().findSchema({"nsimplex::attention", ""}).has_value() ? 0 : 1;
}
