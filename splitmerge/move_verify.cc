// How a move knows that both sides have the same rows: all of them are compared at the copy's snapshot; from
// then on a second slot says which have changed, and those are compared while the target catches up, again and
// again, until under the fence only the last few are left.
#include <algorithm>
#include <limits>

#include "base/sql_quote.h"
#include "splitmerge/key_check.h"
#include "splitmerge/move.h"

namespace kintsugi::splitmerge {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kShardDeadline{15000};
constexpr std::size_t kKeysAtOnceMax = 20000;
constexpr milliseconds kRoundShort{250};
constexpr milliseconds kRoundLong{1000};
constexpr milliseconds kRoundDeadline{600000};  // rows may be large
constexpr double kRowsAMillisecond = 500;       // what is compared in it, as long as nobody has measured
constexpr int kCopiesMax = 10;
constexpr int kLossesMax = 4;
constexpr int kRoundsBeforeFence = 3;
constexpr std::size_t kFew = 200;

Deadline soon() {
  return Deadline::in(kShardDeadline);
}

std::size_t count_of(const std::vector<RowKeys>& keys) {
  std::size_t count = 0;
  for (const RowKeys& some : keys) count += some.size();
  return count;
}

Result<EndedTransactions> ended_transactions(shardmap::PgSession& source) {
  KG_TRY(const auto rows,
         source.query(
             "SELECT mod(pg_snapshot_xmax(s)::text::numeric, 4294967296)::text, ARRAY(SELECT "
             "mod(x::text::numeric, 4294967296) FROM pg_snapshot_xip(s) x)::text FROM pg_current_snapshot() s",
             {}, soon()));
  EndedTransactions ended;
  ended.next = static_cast<std::uint32_t>(std::stoul(*rows.at(0).at(0)));
  std::string number;
  for (const char c : *rows[0][1]) {
    if (c >= '0' && c <= '9') {
      number += c;
    } else if (!number.empty()) {
      ended.but.insert(static_cast<std::uint32_t>(std::stoul(number)));
      number.clear();
    }
  }
  return ended;
}

}  // namespace

// Everything at the copy's snapshot; and how long that takes, a table at a time.
Status Move::verify_copy(const std::string& snapshot) {
  const Deadline never = Deadline::never();
  verify_took_.clear();
  return source_->transaction(
      [&]() -> Status {
        KG_CHECK(
            source_->script("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET TRANSACTION "
                            "SNAPSHOT " +
                                quote_literal(snapshot),
                            soon()));
        for (const MovedTable& table : tables_) {
          const std::vector<MovedTable> one{table};
          const auto began = Clock::now();
          KG_TRY(const BothSums sums, sums_of_both(*source_, *target_, one, never));
          verify_took_.push_back(std::chrono::duration_cast<microseconds>(Clock::now() - began));
          KG_CHECK(compare_sums(one, sums, *source_, *target_, never));
        }
        return {};
      },
      never);
}

// The stream of changes runs, from the copy's snapshot on.
Status Move::follow_changes() {
  if (tables_.empty() || (changes_ && changes_->good())) return {};
  changes_.reset();
  pending_.assign(tables_.size(), {});
  const std::string name = job_name(stored_.map->store_id(), lease_.id());
  KG_CHECK(end_reader(*source_, check_slot_of(name), soon()));
  KG_TRY(changes_, ChangeStream::start(
                       *stored_.map->shard(work().source), name, check_slot_of(name), name, tables_, lease_,
                       [this] { return lease_.go_on(true); }, soon()));
  return {};
}

// Compares what has changed until now. A row that is found equal is done with until it changes again, which we
// shall be told; the others are asked for once more.
Result<Move::Round> Move::compare_changed() {
  KG_CHECK(follow_changes());
  const std::vector<RowKeys> before = pending_;
  const std::size_t left = count_of(before);
  KG_TRY(const EndedTransactions ended, ended_transactions(*source_));
  const std::vector<RowKeys> told = changes_->take(keys_at_once_ - std::min(keys_at_once_ - 1, left), &ended);
  for (std::size_t i = 0; i < told.size(); ++i) pending_[i].insert(told[i].begin(), told[i].end());
  const std::size_t compared = count_of(pending_);
  const auto began = Clock::now();
  KG_TRY(const auto here, sums_of_keys(*source_, tables_, pending_, Deadline::in(kRoundDeadline)));
  // What the source has shown is on the target when the mark is.
  const auto looked = Clock::now();
  KG_TRY(const milliseconds lag, measure_lag(Deadline::in(tuning_.catch_up_patience)));
  const auto arrived = Clock::now();
  KG_TRY(const auto there, sums_of_keys(*target_, tables_, pending_, Deadline::in(kRoundDeadline)));
  const auto took = Clock::now() - arrived + looked - began;
  choose_keys_at_once(compared, took);
  Round round{lag, 0, {}};
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    std::size_t at = 0;
    for (auto key = pending_[i].begin(); key != pending_[i].end(); ++at) {
      if (here[i][at] == there[i][at]) {
        key = pending_[i].erase(key);
        continue;
      }
      // One that stays different although nobody changes it is the fence's to judge.
      if (!before[i].contains(*key) || told[i].contains(*key)) ++round.left;
      ++key;
    }
  }
  round.left += changes_->waiting();
  // What a round takes on a busy server is mostly the way there and back; of rows that are large it is more.
  if (compared > 0 && took > kRoundShort)
    round.takes = std::chrono::duration_cast<microseconds>(took) / compared * round.left;
  return round;
}

// Rows may be of a few bytes or of a gigabyte.
void Move::choose_keys_at_once(std::size_t compared, Clock::duration took) {
  if (compared == 0) return;
  if (took > kRoundLong) {
    keys_at_once_ = std::max<std::size_t>(1, compared / 2);
  } else if (took < kRoundShort) {
    keys_at_once_ = std::min(kKeysAtOnceMax, 2 * keys_at_once_);
  }
}

// Leaves as few as can be.
Status Move::compare_before_fence() {
  if (!online() || tables_.empty()) return {};
  for (int n = 0; n < kRoundsBeforeFence; ++n) {
    KG_TRY(const Round round, compare_changed());
    if (round.left <= kFew && round.takes <= tuning_.compare_max) break;
  }
  return {};
}

// Decides which tables are compared as a whole under the fence, while nobody waits yet: the small ones.
void Move::choose_verification() {
  whole_.clear();
  std::vector<std::pair<microseconds, std::size_t>> order;
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    order.emplace_back(
        verify_took_.size() == tables_.size()
            ? verify_took_[i]
            : microseconds(static_cast<std::int64_t>(tables_[i].rows_estimate * 1000 / kRowsAMillisecond)),
        i);
  }
  std::sort(order.begin(), order.end());
  microseconds left = tuning_.verify_in_fence;
  for (const auto& [takes, i] : order) {
    if (takes > left) break;
    left -= takes;
    whole_.push_back(i);
  }
}

Result<bool> Move::tables_have_changed() {
  if (work().version.empty() || tables_.empty()) return false;
  KG_TRY(const std::string now, version_of(*source_, tables_, soon()));
  return now != work().version;
}

Result<bool> Move::tables_have_changed_there(shardmap::PgSession& target) {
  if (work().version_there.empty() || tables_.empty()) return false;
  KG_TRY(const std::string now, version_of(target, tables_, soon()));
  return now != work().version_there;
}

bool Move::tables_are_others() {
  if (!connect()) return false;
  const auto here = tables_have_changed();
  const auto there = tables_have_changed_there(*target_);
  return (here && *here) || (there && *there);
}

Following Move::following() const {
  return {job_name(stored_.map->store_id(), lease_.id()), stored_.map->shard(work().source)->name,
          stored_.map->shard(work().target)->name, stored_.map->shard(work().source)->dsn};
}

// Empty also where nobody can tell.
std::string Move::what_is_lost() {
  if (tables_.empty() || !connect()) return {};
  return lost_of(*source_, *target_, following(), soon()).value_or("");
}

Result<bool> Move::begun_anew() {
  const bool others = tables_are_others();
  const std::string lost = others ? "" : what_is_lost();
  if (!others && lost.empty()) return false;
  if (!lost.empty() && ++losses_ >= kLossesMax) {
    return fail("55000", lost,
                "Nothing may drop what the move has made; max_slot_wal_keep_size is to be enough for what is "
                "written while the rows are copied (-1: no limit). Then RESUME JOB.");
  }
  KG_CHECK(copy_anew(others ? kAltered : lost));
  return true;
}

// TRUNCATE, ALTER, CREATE and DROP TABLE are not followed: what was copied is thrown away. So it is when what
// follows the source was taken away. Any state before the fence -> preparing.
Status Move::copy_anew(const std::string& why) {
  if (++copies_ >= kCopiesMax) {
    return fail("55000", why + ", again and again while they were copied",
                "RESUME JOB when nothing does so any more.");
  }
  slot_.reset();
  changes_.reset();
  source_.reset();  // and with it what was known of the tables
  return lease_.update([&why](JobRecord& record) {
    record.info.history.push_back({utc_now(), why + ": copying anew"});
    record.info.state = JobState::kPreparing;
    record.info.history.push_back({utc_now(), "preparing"});
    record.work.fenced = false;
  });
}

// The source's side, in a thread of its own while the target drains.
Result<Move::FencedSource> Move::look_at_source() {
  FencedSource source;
  source.keys.resize(tables_.size());
  KG_TRY(const bool changed, tables_have_changed());
  if (changed)
    return fail(kTablesChanged, "the tables of the shardlet were emptied or altered while they moved");
  KG_TRY(source.sequences, sequences_of(*source_, tables_, soon()));
  if (work().verified || tables_.empty()) return source;
  for (const std::size_t i : whole_) source.whole.push_back(tables_[i]);
  const Deadline patience = drain_deadline();
  const Status told_all = changes_->wait_for(fence_mark_, patience, [this] { return lease_.go_on(true); });
  if (!told_all && patience.passed() && lease_.go_on(true)) return fail(kTooSlow, told_all.error().message);
  KG_CHECK(told_all);
  // Whoever had changed anything has ended: the fence has waited for it.
  const std::vector<RowKeys> told = changes_->take(std::numeric_limits<std::size_t>::max(), nullptr);
  for (std::size_t i = 0; i < told.size(); ++i) pending_[i].insert(told[i].begin(), told[i].end());
  source.keys = pending_;
  for (const std::size_t i : whole_) source.keys[i].clear();
  KG_TRY(source.of_keys, sums_of_keys(*source_, tables_, source.keys, soon()));
  KG_TRY(source.of_whole, sums_of(*source_, source.whole, soon()));
  return source;
}

Status Move::verify_fenced(const FencedSource& source) {
  if (work().verified || tables_.empty()) return {};
  KG_TRY(const auto there, sums_of_keys(*target_, tables_, source.keys, soon()));
  KG_CHECK(compare_keys(tables_, source.keys, source.of_keys, there));
  KG_TRY(const auto whole, sums_of(*target_, source.whole, soon()));
  KG_CHECK(compare_sums(source.whole, {source.of_whole, whole}, *source_, *target_, soon()));
  mark("compared: " + std::to_string(count_of(source.keys)) + " changed rows and " +
       std::to_string(source.whole.size()) + " tables as a whole");
  return {};
}

}  // namespace kintsugi::splitmerge
