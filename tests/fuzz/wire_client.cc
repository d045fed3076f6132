// A client's stream of messages.
#include "tests/fuzz/wire_stream.h"

namespace {
void fuzz(std::string_view input) {
  kintsugi::wire::fuzz_stream(input, kintsugi::wire::rewrite_client, [](char) { return true; });
}
std::vector<std::string> seeds() {
  return kintsugi::wire::stream_seeds(kintsugi::wire::client_samples());
}
}  // namespace

KINTSUGI_FUZZ_TARGET(wire_client, fuzz, seeds)
