// The records of all jobs in the map store. A finished one is kept under another kind, so that looking for work
// stays cheap; one that has left something behind stays among the running until that is gone. One thread at a
// time; the store must outlive it. Private to splitmerge/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "splitmerge/job_record.h"

namespace kintsugi::splitmerge {

inline constexpr const char* kEndedNote = "job_ended";

struct StoredJob {
  JobRecord record;
  std::string body;         // as it is stored: what a change expects
  std::int64_t age_ms = 0;  // since somebody wrote it, by the store's clock
};

class JobNotes {
 public:
  explicit JobNotes(shardmap::MapStore& store) : store_(store) {}

  Result<std::vector<StoredJob>> running(Deadline deadline);  // queued ones too; by number
  Result<std::vector<StoredJob>> ended(Deadline deadline);
  // 42704 when there is none.
  Result<StoredJob> find(std::uint64_t id, Deadline deadline);

  // Gives numbers to these and stores them, with `others` in the same change.
  Result<std::vector<JobRecord>> add(std::vector<JobRecord> records,
                                     const std::vector<shardmap::NoteChange>& others, Deadline deadline);

  Result<bool> cancel_asked(std::uint64_t id, Deadline deadline);

 private:
  Result<std::vector<StoredJob>> read(const char* kind, Deadline deadline);
  shardmap::MapStore& store_;
};

// The changes that put `record` in the place of `body`; a final one goes among the ended.
std::vector<shardmap::NoteChange> changes_to(const JobRecord& record, const std::string& body);

}  // namespace kintsugi::splitmerge
