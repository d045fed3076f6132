// What comes before the first message: startup, SSLRequest, GSSENCRequest, CancelRequest.
#include "tests/fuzz/target.h"
#include "tests/wire/every_message.h"

namespace kintsugi::wire {
namespace {

void fuzz(std::string_view input) {
  auto read = read_initial_packet(input);
  if (!read) {
    CHECK_THAT(read.error().sqlstate == "08P01" || read.error().sqlstate == "0A000");
    return;
  }
  if (!*read) return;
  CHECK_THAT((*read)->size <= input.size() && (*read)->size >= 8);
  auto less = read_initial_packet(input.substr(0, (*read)->size - 1));
  CHECK_THAT(less && !*less);
  auto* startup = std::get_if<StartupMessage>(&(*read)->packet);
  if (!startup) return;
  CHECK_THAT(startup->parameters.size() <= kMaxInitialPacket / 3);
  if (auto user = startup->user()) CHECK_THAT(!user->empty() && !startup->database().empty());
  CHECK_THAT(startup->protocol_options().size() <= startup->parameters.size());
  std::string out;
  append_startup(out, startup->parameters);
  auto again = read_initial_packet(out);
  CHECK_THAT(again && *again && (*again)->size == (*read)->size);
  CHECK_THAT(std::get<StartupMessage>((*again)->packet).parameters == startup->parameters);
}

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (Sample& sample : initial_samples()) all.push_back(std::move(sample.frame));
  return all;
}

}  // namespace
}  // namespace kintsugi::wire

KINTSUGI_FUZZ_TARGET(wire_startup, kintsugi::wire::fuzz, kintsugi::wire::seeds)
