// What the two streams of frames, a client's and a server's, are checked for alike.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/target.h"
#include "tests/wire/every_message.h"

namespace kintsugi::wire {

using Rewrite = Result<std::string> (*)(char, std::string_view);

// Reads `input` frame by frame as a connection would: a part of a frame is no frame, a frame's bytes are its
// own, a body that reads is written again as the same bytes, and nothing is refused but as malformed.
inline void fuzz_stream(std::string_view input, Rewrite rewrite, bool (*one_spelling)(char)) {
  constexpr std::uint64_t kMaxBody = 1 << 16;
  while (true) {
    auto head = peek_head(input, kMaxBody);
    auto frame = peek_frame(input, kMaxBody);
    CHECK_THAT(head.has_value() == frame.has_value());
    if (!frame) {
      CHECK_THAT(frame.error().sqlstate == "08P01");
      return;
    }
    if (!*frame) {
      CHECK_THAT(!*head || input.size() < (*head)->frame_size());
      return;
    }
    CHECK_THAT((*frame)->bytes() == input.substr(0, (*head)->frame_size()));
    CHECK_THAT(!*peek_frame(input.substr(0, (*frame)->size() - 1), kMaxBody));
    auto again = rewrite((*frame)->type, (*frame)->body);
    if (again) {
      CHECK_THAT(!one_spelling((*frame)->type) || *again == (*frame)->bytes());
      // What we have written ourselves has to read, and to be the same once more.
      auto twice = rewrite((*again)[0], std::string_view(*again).substr(kHeaderBytes));
      CHECK_THAT(twice && *twice == *again);
    } else {
      CHECK_THAT(again.error().sqlstate == "08P01" || again.error().sqlstate == "22023");
    }
    input.remove_prefix((*frame)->size());
  }
}

inline std::vector<std::string> stream_seeds(const std::vector<Sample>& samples) {
  std::vector<std::string> seeds;
  std::string all;
  for (const Sample& sample : samples) {
    seeds.push_back(sample.frame);
    all += sample.frame;
  }
  seeds.push_back(all);
  return seeds;
}

}  // namespace kintsugi::wire
