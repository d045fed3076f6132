// COPY FROM STDIN on several shards at once: the client's data split by key while they stream.
//
//   CopyInRun copy(request);                      every backend is inside a transaction already
//   FanStep step = co_await copy.start();         kSuspended: send copy.response() to the client
//   for each CopyData:   copy.feed(piece);        and when copy.full(): co_await copy.make_room()
//   CopyDone:            step = co_await copy.finish();
//   CopyFail:            step = co_await copy.give_up("what the client said");
//
// When failed() becomes true the client is to be told at once, as PostgreSQL does: finish() gives the error,
// and what the client still sends of the COPY is to be read over. Whatever the last step says, every backend
// has answered and is ready, or is broken. Rows that some shards have taken are undone by nothing but the
// rollback of their transactions.
//
// Belongs to one coroutine and its thread; backends and waiter stay alive.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "executor/backend.h"
#include "executor/copy_split.h"
#include "executor/fan.h"

namespace kintsugi::executor {

struct CopyInRequest {
  planner::CopyIn plan;
  std::vector<Backend*> backends;  // for plan.shards, in their order
  std::string text;                // the COPY statement for the shards
  shardmap::MapPtr map;
  io::Waiter* waiter = nullptr;
  Deadline deadline = Deadline::never();
  std::uint64_t max_message = std::uint64_t{256} << 20;  // the longest row
};

class CopyInRun {
 public:
  explicit CopyInRun(CopyInRequest request) : request_(std::move(request)) {}

  // kSuspended: all shards wait for data.
  io::Task<FanStep> start();
  // The first shard's CopyInResponse, a whole message.
  [[nodiscard]] const std::string& response() const { return response_; }

  // A piece of the data, of any length. Does nothing after an error.
  void feed(std::string_view piece);
  // The shards are behind: nothing more should be read from the client.
  [[nodiscard]] bool full() const;
  // Returns when there is room again, or something has failed. `gone` ends the wait: the client has left, or
  // has cancelled; it is asked at every wake-up.
  io::Task<void> make_room(std::function<Status()> gone);
  [[nodiscard]] bool failed() const { return failed_; }

  io::Task<FanStep> finish();
  io::Task<FanStep> give_up(std::string why);

 private:
  void send_outputs();
  void look_for_errors();
  void fail_with(const Error& error);
  io::Task<FanStep> end(bool good, std::string why);

  CopyInRequest request_;
  std::unique_ptr<CopySplitter> splitter_;
  std::string response_;
  bool failed_ = false;
  FanStep failure_;
};

}  // namespace kintsugi::executor
