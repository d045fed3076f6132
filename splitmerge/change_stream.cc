#include "splitmerge/change_stream.h"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>

#include "base/sql_quote.h"
#include "wire/frame.h"

namespace kintsugi::splitmerge {
namespace {

using Clock = Deadline::Clock;
using std::chrono::milliseconds;

constexpr std::size_t kKeysMax = 200000;  // then the source waits until some were taken
constexpr milliseconds kLook{20};
constexpr std::chrono::seconds kAliveEvery{5};
constexpr std::size_t kDataHeader = 24;  // positions and a time, before each message

struct FreeMemory {
  void operator()(char* buffer) const { PQfreemem(buffer); }
};

void append_u64(std::string& out, std::uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

}  // namespace

ChangeStream::ChangeStream(RawLink link, std::vector<MovedTable> tables)
    : link_(std::move(link)),
      tables_(std::move(tables)),
      told_alive_(Clock::now()),
      keys_(tables_.size()),
      thread_([this] { follow(); }) {}

Result<std::unique_ptr<ChangeStream>> ChangeStream::start(const shardmap::Shard& source,
                                                          const std::string& name, const std::string& slot,
                                                          const std::string& publication,
                                                          const std::vector<MovedTable>& tables,
                                                          JobLease& lease, const RawLink::GoOn& go_on,
                                                          Deadline deadline) {
  KG_TRY(RawLink link, RawLink::open(source, name, true, lease, deadline));
  KG_CHECK(link.run("START_REPLICATION SLOT " + quote_identifier(slot) +
                        " LOGICAL 0/0 (proto_version '1', publication_names " +
                        quote_literal(quote_identifier(publication)) + ")",
                    deadline, go_on));
  return std::unique_ptr<ChangeStream>(new ChangeStream(std::move(link), tables));
}

ChangeStream::~ChangeStream() {
  stop_ = true;
  changed_.notify_all();
  thread_.join();
}

void ChangeStream::follow() {
  const auto step = [this]() -> Status {
    if (Clock::now() - told_alive_ > kAliveEvery) KG_CHECK(tell_alive());
    {
      std::unique_lock lock(mutex_);
      if (count_ >= kKeysMax) {
        changed_.wait_for(lock, kLook);
        return {};
      }
    }
    char* buffer = nullptr;
    const int size = PQgetCopyData(link_.pg(), &buffer, 1);
    const std::unique_ptr<char, FreeMemory> owned(buffer);
    if (size > 0) return take_message({buffer, static_cast<std::size_t>(size)});
    if (size < 0) return fail(link_.error(nullptr));
    pollfd fd{PQsocket(link_.pg()), POLLIN, 0};
    (void)poll(&fd, 1, static_cast<int>(kLook.count()));
    if (PQconsumeInput(link_.pg()) == 0) return fail(link_.error(nullptr));
    return {};
  };
  while (!stop_) {
    const Status done = step();
    if (done) continue;
    const std::lock_guard lock(mutex_);
    problem_ = done.error();
    changed_.notify_all();
    return;
  }
}

// Says how far we have read, and nothing of what may be forgotten: the slot is to stay where it began.
Status ChangeStream::tell_alive() {
  std::string answer = "r";
  append_u64(answer, received_);
  append_u64(answer, 0);
  append_u64(answer, 0);
  append_u64(answer, 0);
  answer += '\0';
  if (PQputCopyData(link_.pg(), answer.data(), static_cast<int>(answer.size())) != 1 || PQflush(link_.pg()) < 0)
    return fail(link_.error(nullptr));
  told_alive_ = Clock::now();
  return {};
}

Status ChangeStream::take_message(std::string_view bytes) {
  wire::BodyReader in(bytes.substr(1));
  const auto u64 = [&in] {
    const std::uint64_t high = in.u32();
    return high << 32 | in.u32();
  };
  if (bytes[0] == 'k') {
    received_ = std::max(received_, u64());
    in.bytes(8);
    const bool asked = in.u8() != 0;
    KG_CHECK(in.finish());
    return asked ? tell_alive() : Status();
  }
  if (bytes[0] != 'w' || bytes.size() < 1 + kDataHeader)
    return fail(sqlstate::kProtocolViolation, "a replication slot says something of no known kind");
  received_ = std::max(received_, u64());
  KG_TRY(const ChangeMessage message, read_change(bytes.substr(1 + kDataHeader)));
  if (const auto* begun = std::get_if<ChangingTransaction>(&message)) xid_ = begun->xid;
  if (const auto* relation = std::get_if<ChangedRelation>(&message)) return take_in(*relation);
  if (const auto* change = std::get_if<RowChange>(&message)) return take_in(*change);
  return {};
}

Status ChangeStream::take_in(const ChangedRelation& relation) {
  Followed& followed = relations_[relation.id];
  followed = {};
  if (relation.schema == "kintsugi" && relation.name == "marker") {
    followed.marks = true;
    return {};
  }
  const auto table = std::find_if(tables_.begin(), tables_.end(), [&](const MovedTable& each) {
    return each.table.schema == relation.schema && each.table.name == relation.name;
  });
  if (table == tables_.end()) return {};
  followed.moves = true;
  followed.table = static_cast<std::size_t>(table - tables_.begin());
  for (const std::string& column : table->row_key.columns) {
    const auto at = std::find(relation.columns.begin(), relation.columns.end(), column);
    if (at == relation.columns.end())
      return fail("55000", "column " + column + " of table " + table->table.display() + " is not followed");
    followed.key.push_back(static_cast<std::size_t>(at - relation.columns.begin()));
  }
  return {};
}

Status ChangeStream::take_in(const RowChange& change) {
  const auto found = relations_.find(change.relation);
  if (found == relations_.end())
    return fail(sqlstate::kProtocolViolation, "a replication slot tells of a relation that it has not named");
  const Followed& followed = found->second;
  if (followed.marks) {
    const std::lock_guard lock(mutex_);
    if (change.after && change.after->size() == 2 && (*change.after)[1]) mark_ = *(*change.after)[1];
    changed_.notify_all();
    return {};
  }
  if (!followed.moves)
    return fail(sqlstate::kInternal, "a replication slot tells of a table that does not move");
  for (const auto* tuple : {&change.before, &change.after}) {
    if (!*tuple) continue;
    RowKey key;
    for (const std::size_t at : followed.key) {
      std::optional<std::string_view> value;
      if (at < (*tuple)->size()) value = (**tuple)[at];
      if (!value && change.before && at < change.before->size()) value = (*change.before)[at];
      if (!value) {
        return fail("55000", "a changed row of table " + tables_[followed.table].table.display() +
                                 " is told without its key");
      }
      key.emplace_back(*value);
    }
    const std::lock_guard lock(mutex_);
    if (keys_[followed.table].insert_or_assign(std::move(key), xid_).second) ++count_;
  }
  return {};
}

std::vector<RowKeys> ChangeStream::take(std::size_t limit, const EndedTransactions* ended) {
  std::vector<RowKeys> taken(keys_.size());
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    for (auto key = keys_[i].begin(); key != keys_[i].end() && limit > 0;) {
      if (ended != nullptr && !ended->contains(key->second)) {
        ++key;
        continue;
      }
      taken[i].insert(key->first);
      key = keys_[i].erase(key);
      --count_;
      --limit;
    }
  }
  changed_.notify_all();
  return taken;
}

std::size_t ChangeStream::waiting() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

bool ChangeStream::good() const {
  const std::lock_guard lock(mutex_);
  return !problem_;
}

Status ChangeStream::wait_for(const std::string& mark, Deadline deadline, const RawLink::GoOn& go_on) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (problem_) return fail(*problem_);
    if (mark_ == mark) return {};
    if (deadline.passed()) return fail(sqlstate::kQueryCanceled, "the source's changes are told too slowly");
    KG_CHECK(go_on());
    changed_.wait_for(lock, kLook);
  }
}

}  // namespace kintsugi::splitmerge
