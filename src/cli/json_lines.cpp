#include "cli/json_lines.h"

#include "cli/output.h"

namespace nsimplex::cli {

void print_json_line(const Json& object) {
  print(object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace nsimplex::cli
