// Which rows of a move have changed on the source since the snapshot that was copied: a second slot, read by a
// thread of our own while the subscription reads the first. What it has told is kept here and nowhere else:
// the slot stays where it began, so a successor of the mover is told everything again. Private to splitmerge/.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "splitmerge/change_message.h"
#include "splitmerge/moved_table.h"
#include "splitmerge/shard_link.h"

namespace kintsugi::splitmerge {

using RowKey = std::vector<std::string>;  // the values of MovedTable::row_key
using RowKeys = std::set<RowKey>;

// Which transactions have ended for those who look at the source now: all before `next` but these.
struct EndedTransactions {
  std::uint32_t next = 0;
  std::set<std::uint32_t> but;
  [[nodiscard]] bool contains(std::uint32_t xid) const {
    return static_cast<std::int32_t>(xid - next) < 0 && !but.contains(xid);
  }
};

class ChangeStream {
 public:
  // 42704 when there is no such slot. `publication` has the tables and kintsugi.marker.
  static Result<std::unique_ptr<ChangeStream>> start(const shardmap::Shard& source, const std::string& name,
                                                     const std::string& slot, const std::string& publication,
                                                     const std::vector<MovedTable>& tables, JobLease& lease,
                                                     const RawLink::GoOn& go_on, Deadline deadline);
  ~ChangeStream();
  ChangeStream(const ChangeStream&) = delete;
  ChangeStream& operator=(const ChangeStream&) = delete;

  // One set for each table, at most `limit` keys in all; what is taken is told again when it changes again. A
  // slot tells a commit before others see it, and with a synchronous standby long before: keys are held back
  // until the transaction that changed them last is among `ended`; null: all have ended.
  std::vector<RowKeys> take(std::size_t limit, const EndedTransactions* ended);
  // How many keys take() would find.
  [[nodiscard]] std::size_t waiting() const;
  // Waits until all that was committed before this mark was has been told.
  Status wait_for(const std::string& mark, Deadline deadline, const RawLink::GoOn& go_on);
  [[nodiscard]] bool good() const;

 private:
  struct Followed {  // what a relation's changes mean to us
    bool marks = false;
    bool moves = false;  // a partition is named too, but what changes is its root
    std::size_t table = 0;
    std::vector<std::size_t> key;  // places of the key's columns
  };
  explicit ChangeStream(RawLink link, std::vector<MovedTable> tables);
  void follow();
  Status take_message(std::string_view bytes);
  Status take_in(const ChangedRelation& relation);
  Status take_in(const RowChange& change);
  Status tell_alive();

  RawLink link_;  // the thread's
  const std::vector<MovedTable> tables_;
  std::unordered_map<std::uint32_t, Followed> relations_;  // the thread's
  std::uint64_t received_ = 0;                             // the thread's
  std::uint32_t xid_ = 0;                                  // the thread's: of the changes that follow
  Deadline::Clock::time_point told_alive_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::map<RowKey, std::uint32_t>> keys_;  // guarded: and who has changed it last
  std::size_t count_ = 0;                              // guarded: of all sets together
  std::string mark_;                                   // guarded: the last that has come by
  std::optional<Error> problem_;                       // guarded: it has ended with this
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace kintsugi::splitmerge
