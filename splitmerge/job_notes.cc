#include "splitmerge/job_notes.h"

#include <algorithm>

#include "base/log.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::Note;
using shardmap::NoteChange;

constexpr int kAttempts = 20;
constexpr std::size_t kEndedMax = 500;

}  // namespace

Result<std::vector<StoredJob>> JobNotes::read(const char* kind, Deadline deadline) {
  KG_TRY(const auto notes, store_.notes(kind, deadline));
  std::vector<StoredJob> jobs;
  for (const Note& note : notes) {
    auto record = record_of(note.body);
    if (!record) {
      // A newer router's job, perhaps: it is not ours to do, and must not hide the others.
      log::warning("the record of a job cannot be read",
                   {{"job", note.key}, {"reason", record.error().message}});
      continue;
    }
    jobs.push_back({*std::move(record), note.body, note.age_ms});
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const StoredJob& a, const StoredJob& b) { return a.record.info.id < b.record.info.id; });
  return jobs;
}

Result<std::vector<StoredJob>> JobNotes::running(Deadline deadline) {
  return read(kJobNote, deadline);
}

Result<std::vector<StoredJob>> JobNotes::ended(Deadline deadline) {
  return read(kEndedNote, deadline);
}

Result<StoredJob> JobNotes::find(std::uint64_t id, Deadline deadline) {
  for (const char* kind : {kJobNote, kEndedNote, kJobNote}) {  // it may end while we look
    KG_TRY(auto jobs, read(kind, deadline));
    for (StoredJob& job : jobs) {
      if (job.record.info.id == id) return std::move(job);
    }
  }
  return fail(sqlstate::kUndefinedObject, "there is no job " + std::to_string(id));
}

Result<std::vector<JobRecord>> JobNotes::add(std::vector<JobRecord> records,
                                             const std::vector<NoteChange>& others, Deadline deadline) {
  Error last;
  for (int attempt = 0; attempt < kAttempts && !deadline.passed(); ++attempt) {
    KG_TRY(const auto counters, store_.notes(kCounterNote, deadline));
    const std::string body = counters.empty() ? "" : counters[0].body;
    std::uint64_t next = body.empty() ? 1 : std::stoull(body);
    std::vector<NoteChange> changes = others;
    for (JobRecord& record : records) {
      record.info.id = next++;
      changes.push_back({kJobNote, std::to_string(record.info.id), body_of(record), ""});
    }
    changes.push_back({kCounterNote, "next", std::to_string(next), body});
    // The oldest of the ended make room.
    KG_TRY(const auto old, ended(deadline));
    for (std::size_t i = 0; i + kEndedMax < old.size(); ++i)
      changes.push_back({kEndedNote, std::to_string(old[i].record.info.id), {}, {}});
    const Status done = store_.put_notes(changes, deadline);
    if (done) return records;
    last = done.error();
    if (last.sqlstate != sqlstate::kSerializationFailure) break;
    // Only the race for the number is worth another try.
    if (last.message.find(kCounterNote) == std::string::npos) break;
  }
  return fail(last);
}

Result<bool> JobNotes::cancel_asked(std::uint64_t id, Deadline deadline) {
  KG_TRY(const auto notes, store_.notes(kCancelNote, deadline));
  return std::any_of(notes.begin(), notes.end(),
                     [key = std::to_string(id)](const Note& note) { return note.key == key; });
}

std::vector<NoteChange> changes_to(const JobRecord& record, const std::string& body) {
  const std::string key = std::to_string(record.info.id);
  if (!is_final(record.info.state)) return {{kJobNote, key, body_of(record), body}};
  if (!is_over(record)) return {{kJobNote, key, body_of(record), body}, {kCancelNote, key, {}, {}}};
  return {{kJobNote, key, {}, body}, {kEndedNote, key, body_of(record), {}}, {kCancelNote, key, {}, {}}};
}

}  // namespace kintsugi::splitmerge
