// Counts what the sessions of one worker do. Its thread only: plain numbers, no locks, nothing allocated on the
// way of an ordinary statement. Others ask the worker for a copy.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "admin/commands/router_load.h"

namespace kintsugi::frontend {

class LoadCounter {
 public:
  // So many statements that were answered together, some of them with errors, and how long that took.
  void count(admin::StatementTier tier, std::uint32_t statements, std::uint32_t failed, std::uint64_t us) {
    auto& counted = load_.tiers[static_cast<std::size_t>(tier)];
    counted.ok += statements - failed;
    counted.failed += failed;
    counted.us += us;
    ++counted.latency[bucket(us)];
  }
  void refused() { ++load_.refused; }
  void hold_begins() { ++load_.held_now; }
  void hold_ends(std::uint64_t us);
  // A statement for one shardlet. Every sixteenth is looked at.
  void touch(std::string_view shardlet) {
    if ((++touches_ & (kSampled - 1)) == 0) sample(shardlet);
  }
  void slow(admin::SlowStatement statement);

  [[nodiscard]] admin::RouterLoad copy() const;

  static std::size_t bucket(std::uint64_t us);

 private:
  static constexpr std::uint64_t kSampled = 16;
  static constexpr std::size_t kShardletsMost = 512, kSlowMost = 50;

  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
  };
  void sample(std::string_view shardlet);

  admin::RouterLoad load_;
  std::uint64_t touches_ = 0;
  std::unordered_map<std::string, std::uint64_t, NameHash, std::equal_to<>> shardlets_;
  std::deque<admin::SlowStatement> slow_;
};

// A statement's text for logs: literals as ?, comments and white space gone, cut to a line's length.
[[nodiscard]] std::string without_literals(std::string_view text);

}  // namespace kintsugi::frontend
