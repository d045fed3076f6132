// A server's stream of messages.
#include "tests/fuzz/wire_stream.h"

namespace {
void fuzz(std::string_view input) {
  kintsugi::wire::fuzz_stream(input, kintsugi::wire::rewrite_server, kintsugi::wire::one_spelling_server);
}
std::vector<std::string> seeds() {
  return kintsugi::wire::stream_seeds(kintsugi::wire::server_samples());
}
}  // namespace

KINTSUGI_FUZZ_TARGET(wire_server, fuzz, seeds)
