#include "frontend/load_counter.h"

#include <algorithm>
#include <bit>

#include "parser/scanner.h"

namespace kintsugi::frontend {

std::size_t LoadCounter::bucket(std::uint64_t us) {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(us)), admin::kLatencyBuckets - 1);
}

void LoadCounter::hold_ends(std::uint64_t us) {
  --load_.held_now;
  ++load_.held;
  load_.held_us += us;
}

void LoadCounter::sample(std::string_view shardlet) {
  const auto at = shardlets_.find(shardlet);
  if (at != shardlets_.end()) {
    at->second += kSampled;
    return;
  }
  if (shardlets_.size() >= kShardletsMost) {
    // The busiest half stays. What was dropped and comes again begins anew: they are about right at the top.
    std::vector<std::uint64_t> counts;
    for (const auto& [name, count] : shardlets_) counts.push_back(count);
    std::ranges::nth_element(counts, counts.begin() + kShardletsMost / 2);
    const std::uint64_t middle = counts[kShardletsMost / 2];
    std::erase_if(shardlets_, [middle](const auto& each) { return each.second <= middle; });
  }
  shardlets_.emplace(shardlet, kSampled);
}

void LoadCounter::slow(admin::SlowStatement statement) {
  ++load_.slow;
  slow_.push_front(std::move(statement));
  if (slow_.size() > kSlowMost) slow_.pop_back();
}

admin::RouterLoad LoadCounter::copy() const {
  admin::RouterLoad load = load_;
  load.shardlets.assign(shardlets_.begin(), shardlets_.end());
  load.slowest.assign(slow_.begin(), slow_.end());
  return load;
}

std::string without_literals(std::string_view text) {
  using Kind = parser::TokenKind;
  constexpr std::size_t kLongest = 2000;
  std::string out;
  parser::Scanner scanner(text);
  std::uint32_t end = 0;
  for (;;) {
    const parser::Token token = scanner.next();
    if (token.kind == Kind::kEnd || token.kind == Kind::kError || out.size() >= kLongest) {
      if (token.kind != Kind::kEnd) out += " ...";
      break;
    }
    if (!out.empty() && token.begin > end) out += ' ';
    end = token.end;
    switch (token.kind) {
      case Kind::kString:
      case Kind::kEscapeString:
      case Kind::kUnicodeString:
      case Kind::kBitString:
      case Kind::kHexString:
      case Kind::kDollarString:
      case Kind::kInteger:
      case Kind::kNumeric: out += '?'; break;
      default: out += token.of(text);
    }
  }
  return out;
}

}  // namespace kintsugi::frontend
