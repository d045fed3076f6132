// What every message has in common: it survives the way there and back, and no shorter, longer or altered body
// of it is anything but the same kind of message or an error with SQLSTATE 08P01.
#include <gtest/gtest.h>

#include <random>

#include "tests/fuzz/mutation.h"
#include "tests/wire/every_message.h"

namespace kintsugi::wire {
namespace {

using Rewrite = Result<std::string> (*)(char, std::string_view);

std::string_view body_of(const Sample& sample) {
  return std::string_view(sample.frame).substr(kHeaderBytes);
}

// A copy of exactly the body's size on the heap, so that AddressSanitizer sees a read beyond it.
Result<std::string> rewrite_exact(Rewrite rewrite, char type, std::string_view body) {
  std::vector<char> exact(body.begin(), body.end());
  exact.shrink_to_fit();
  return rewrite(type, std::string_view(exact.data(), exact.size()));
}

void round_trips(const std::vector<Sample>& samples, Rewrite rewrite) {
  for (const Sample& sample : samples) {
    auto frame = peek_frame(sample.frame, sample.frame.size());
    ASSERT_TRUE(frame && *frame) << sample.name;
    EXPECT_EQ((*frame)->bytes(), sample.frame) << sample.name;
    auto again = rewrite_exact(rewrite, sample.frame[0], body_of(sample));
    ASSERT_TRUE(again) << sample.name << ": " << again.error().to_string();
    EXPECT_EQ(*again, sample.frame) << sample.name;
  }
}

void refuses_other_lengths(const std::vector<Sample>& samples, Rewrite rewrite) {
  for (const Sample& sample : samples) {
    char type = sample.frame[0];
    std::string_view body = body_of(sample);
    if (sample.any_body || type == client::kPassword) continue;
    for (std::size_t n = 0; n < body.size(); ++n) {
      auto cut = rewrite_exact(rewrite, type, body.substr(0, n));
      ASSERT_FALSE(cut) << sample.name << " cut to " << n << " of " << body.size();
      EXPECT_EQ(cut.error().sqlstate, "08P01") << sample.name << " cut to " << n;
    }
    for (char extra : {'\0', 'x'}) {
      auto longer = rewrite_exact(rewrite, type, std::string(body) + extra);
      ASSERT_FALSE(longer) << sample.name;
      EXPECT_EQ(longer.error().sqlstate, "08P01") << sample.name;
    }
  }
}

void survives_mutation(const std::vector<Sample>& samples, Rewrite rewrite, bool (*one_spelling)(char)) {
  std::mt19937 random(20260101);  // NOLINT: the same bytes every time
  int read = 0, refused = 0;
  for (const Sample& sample : samples) {
    for (int i = 0; i < 2000; ++i) {
      std::string body = fuzz::mutated(std::string(body_of(sample)), random);
      auto result = rewrite_exact(rewrite, sample.frame[0], body);
      if (result) {
        ++read;
        if (one_spelling(sample.frame[0])) {
          ASSERT_EQ(std::string_view(*result).substr(kHeaderBytes), body) << sample.name;
        }
      } else {
        ++refused;
        // A format code of a Bind has PostgreSQL's own code.
        ASSERT_TRUE(result.error().sqlstate == "08P01" || result.error().sqlstate == "22023")
            << sample.name << ": " << result.error().to_string();
      }
    }
  }
  // Both happen, or the test has stopped testing.
  EXPECT_GT(read, 1000);
  EXPECT_GT(refused, 1000);
}
}  // namespace

TEST(EveryMessage, RoundTrip) {
  round_trips(client_samples(), rewrite_client);
  round_trips(server_samples(), rewrite_server);
}

TEST(EveryMessage, HasASample) {
  auto has = [](const std::vector<Sample>& samples, char type) {
    return std::any_of(samples.begin(), samples.end(), [&](const Sample& s) { return s.frame[0] == type; });
  };
  for (int type = 0; type < 256; ++type) {
    char c = static_cast<char>(type);
    EXPECT_EQ(has(client_samples(), c), client::is_known(c) && c != client::kFunctionCall) << type;
    EXPECT_EQ(has(server_samples(), c),
              server::is_known(c) && c != server::kFunctionResult && c != server::kCopyBoth)
        << type;
  }
}

TEST(EveryMessage, NoOtherLength) {
  refuses_other_lengths(client_samples(), rewrite_client);
  refuses_other_lengths(server_samples(), rewrite_server);
}

TEST(EveryMessage, SurvivesMutation) {
  survives_mutation(client_samples(), rewrite_client, [](char) { return true; });
  survives_mutation(server_samples(), rewrite_server, one_spelling_server);
}

TEST(InitialPacket, SurvivesMutation) {
  std::mt19937 random(7);  // NOLINT
  for (const Sample& sample : initial_samples()) {
    for (int i = 0; i < 5000; ++i) {
      std::string bytes = fuzz::mutated(sample.frame, random);
      if (i % 2 == 0 && bytes.size() >= 4) store_u32(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
      auto read = read_initial_packet(bytes);
      if (read && *read) {
        ASSERT_LE((*read)->size, bytes.size());
      } else if (!read) {
        ASSERT_TRUE(read.error().sqlstate == "08P01" || read.error().sqlstate == "0A000");
      }
    }
  }
}

}  // namespace kintsugi::wire
