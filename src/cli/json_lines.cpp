#include "cli/json_lines.h"

#include "cli/output.h"

namespace nsimplex::cli {

Json of_kind(std::string_view kind, const Json& object) {
  Json line{{"kind", kind}};
  for (const auto& [name, value] : object.items()) {
    if (name != "kind") line[name] = value;
  }
  return line;
}

void print_json_line(std::string_view kind, const Json& object) {
  print(of_kind(kind, object).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace nsimplex::cli
