// One well-formed example of every message, and one function that reads any body by its type and writes it
// again. The unit tests and the fuzz targets share both.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/client_messages.h"
#include "wire/server_messages.h"

namespace kintsugi::wire {

struct Sample {
  std::string name;
  std::string frame;
  bool any_body = false;  // its body has no structure, or ends in bytes of any number
};

[[nodiscard]] std::vector<Sample> client_samples();
[[nodiscard]] std::vector<Sample> server_samples();
[[nodiscard]] std::vector<Sample> initial_samples();

// Reads the body as the message that its type says, down to its last field, and gives it written again: the
// same bytes for every message that has only one spelling, which is every client's. An unknown type is an
// error.
Result<std::string> rewrite_client(char type, std::string_view body);
Result<std::string> rewrite_server(char type, std::string_view body);
[[nodiscard]] bool one_spelling_server(char type);

}  // namespace kintsugi::wire
