#include "executor/two_phase.h"

#include <atomic>
#include <charconv>
#include <random>

#include "base/sql_quote.h"
#include "executor/control_round.h"
#include "executor/lookout.h"
#include "shardmap/failpoint.h"

namespace kintsugi::executor {
namespace {

using shardmap::failpoint;

constexpr std::string_view kPrefix = "kintsugi";
constexpr std::string_view kNotInPrerequisiteState = "55000";
constexpr std::string_view kResolutionUnknown = "08007";

std::string random_word() {
  std::random_device device;
  const std::uint64_t bits = std::uint64_t{device()} << 32 | device();
  static constexpr char kHex[] = "0123456789abcdef";
  std::string word;
  for (int shift = 60; shift >= 0; shift -= 4) word += kHex[bits >> shift & 15];
  return word;
}

bool open(const TransactionBranch& branch) {
  return !branch.backend->broken && branch.backend->status != wire::TransactionStatus::kIdle;
}

void fail_with(CommitOutcome& outcome, const Error& error) {
  outcome.sqlstate = error.sqlstate;
  outcome.error.clear();
  wire::append_error(outcome.error, "ERROR", error);
}

void fail_with(CommitOutcome& outcome, const ControlAnswer& answer) {
  outcome.sqlstate = answer.rows.error().sqlstate;
  outcome.error = answer.error;
}

// A COMMIT or PREPARE of a transaction that has failed succeeds and says ROLLBACK.
bool did(const ControlAnswer& answer, std::string_view tag) {
  return answer.rows.has_value() && answer.tag == tag;
}

// One commit, from the open transactions to the outcome.
class Commit {
 public:
  Commit(std::vector<TransactionBranch> branches, std::string store_id, bool several_routers,
         io::Waiter* waiter, Deadline deadline)
      : store_id_(std::move(store_id)),
        several_routers_(several_routers),
        waiter_(waiter),
        deadline_(deadline),
        branches_(std::move(branches)) {}

  io::Task<CommitOutcome> run();

 private:
  using Answers = std::vector<ControlAnswer>;

  [[nodiscard]] bool may_commit();
  io::Task<Answers> round(std::vector<ControlOrder> orders);
  io::Task<bool> end_readers_and_announce();
  io::Task<bool> prepare();
  io::Task<bool> decide();
  io::Task<void> follow();
  io::Task<void> undo();
  [[nodiscard]] std::string gid_of(std::size_t writer) const { return quote_literal(name_.of_branch(writer)); }
  [[nodiscard]] Backend& decider() { return *writers_.front().backend; }
  [[nodiscard]] bool two_phases() const { return writers_.size() > 1; }

  std::string store_id_;
  bool several_routers_;
  io::Waiter* waiter_;
  Deadline deadline_;
  std::vector<TransactionBranch> branches_;
  std::vector<TransactionBranch> writers_;  // the decider first
  std::vector<bool> prepared_;              // by writer: it is, or may be
  TransactionName name_;
  CommitOutcome outcome_;
};

// All that speaks against it before anything has been sent.
bool Commit::may_commit() {
  for (const TransactionBranch& branch : branches_) {
    if (branch.backend->broken && branch.wrote) {
      fail_with(outcome_, Error{.sqlstate = std::string(sqlstate::kShardUnreachable),
                                .message = "lost the connection to shard " + branch.backend->shard +
                                           " in a transaction: it is rolled back"});
      return false;
    }
    if (!open(branch)) continue;
    if (branch.backend->status == wire::TransactionStatus::kFailed) return false;
    if (!branch.wrote) continue;
    const auto must_decide = [](const TransactionBranch& each) {
      return each.must_decide || each.backend->has_temporaries;
    };
    const bool first = must_decide(branch);
    if (first && !writers_.empty() && must_decide(writers_.front())) {
      fail_with(outcome_,
                Error{.sqlstate = std::string(sqlstate::kNotSupported),
                      .message = "a transaction has used temporary tables on the shards " + decider().shard +
                                 " and " + branch.backend->shard + ": it cannot be committed on both",
                      .hint = "Use temporary tables in transactions of their own."});
      return false;
    }
    writers_.insert(first ? writers_.begin() : writers_.end(), branch);
  }
  prepared_.resize(writers_.size());
  if (two_phases()) {
    name_ = TransactionName::next(store_id_, writers_.front().shard);
    outcome_.gid = name_.to_string();
  }
  return true;
}

io::Task<Commit::Answers> Commit::round(std::vector<ControlOrder> orders) {
  auto running = run_on_all(std::move(orders), waiter_, deadline_);
  Answers answers = co_await std::move(running);
  for (ControlAnswer& answer : answers) outcome_.asides += std::exchange(answer.asides, {});
  co_return answers;
}

// What has been decided may not be forgotten by a crash when the others have done it, whatever the client has
// set or the database has: PREPARE and COMMIT PREPARED always wait for the disk, COMMIT does then.
constexpr std::string_view kLasting =
    "SELECT pg_catalog.set_config('synchronous_commit', 'local', true) "
    "WHERE pg_catalog.current_setting('synchronous_commit') = 'off'; ";

// Those that only read may still fail, as a serializable transaction does. The decision row is made before
// anything is prepared: whoever finds a prepared transaction finds the row or the transaction that makes it.
io::Task<bool> Commit::end_readers_and_announce() {
  std::vector<ControlOrder> orders;
  for (const TransactionBranch& branch : branches_) {
    if (!branch.wrote && open(branch)) orders.push_back({branch.backend, "COMMIT"});
  }
  const std::size_t readers = orders.size();
  if (two_phases()) {
    std::string participants;
    for (std::size_t i = 1; i < writers_.size(); ++i)
      participants += (i > 1 ? "," : "") + std::to_string(writers_[i].shard);
    std::string decision(kLasting);
    if (several_routers_) {
      decision.append(kLockForCommit).append("; ");
      for (std::size_t i = 1; i < writers_.size(); ++i)
        orders.push_back({writers_[i].backend, std::string(kLockForCommit)});
    }
    decision.append("INSERT INTO kintsugi.txn_decision (gid, participants) VALUES (")
        .append(quote_literal(outcome_.gid))
        .append(", ")
        .append(quote_literal(participants))
        .append(")");
    orders.push_back({&decider(), std::move(decision)});
  }
  if (orders.empty()) co_return true;
  auto ending = round(std::move(orders));
  const Answers answers = co_await std::move(ending);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (did(answers[i], i < readers ? "COMMIT" : i + 1 < answers.size() ? "LOCK TABLE" : "INSERT 0 1"))
      continue;
    if (!answers[i].rows) fail_with(outcome_, answers[i]);
    co_return false;
  }
  co_return true;
}

io::Task<bool> Commit::prepare() {
  std::vector<ControlOrder> orders;
  for (std::size_t i = 1; i < writers_.size(); ++i) {
    orders.push_back({writers_[i].backend, "PREPARE TRANSACTION " + gid_of(i)});
  }
  failpoint("txn.announced");
  auto preparing = round(std::move(orders));
  const Answers answers = co_await std::move(preparing);
  bool all = true;
  for (std::size_t i = 1; i < writers_.size(); ++i) {
    const ControlAnswer& answer = answers[i - 1];
    Backend& backend = *writers_[i].backend;
    prepared_[i] = did(answer, "PREPARE TRANSACTION") || backend.broken;
    if (did(answer, "PREPARE TRANSACTION")) continue;
    all = false;
    if (answer.rows || !outcome_.error.empty()) continue;
    const Error& error = answer.rows.error();
    if (error.sqlstate == kNotInPrerequisiteState && error.message == "prepared transactions are disabled") {
      fail_with(outcome_,
                Error{.sqlstate = error.sqlstate,
                      .message = "shard " + backend.shard +
                                 " cannot take part in a transaction that writes on several shards: its "
                                 "max_prepared_transactions is 0",
                      .hint = "Set max_prepared_transactions there to at least its max_connections, and "
                              "restart it."});
    } else {
      fail_with(outcome_, answer);
    }
  }
  failpoint("txn.prepared");
  co_return all;
}

// The one moment at which it is decided. False: it was decided against, or nobody knows.
io::Task<bool> Commit::decide() {
  std::vector<ControlOrder> orders(1, ControlOrder{&decider(), "COMMIT"});
  auto committing = round(std::move(orders));
  const Answers answers = co_await std::move(committing);
  const ControlAnswer& answer = answers.front();
  if (did(answer, "COMMIT")) {
    failpoint("txn.decided");
    co_return true;
  }
  if (decider().broken) {
    outcome_.kind = CommitOutcome::kUnknown;
    fail_with(outcome_,
              Error{.sqlstate = std::string(kResolutionUnknown),
                    .message = "lost the connection to shard " + decider().shard + " while it committed",
                    .detail = "The transaction is committed or rolled back as a whole; which, is not "
                              "known here.",
                    .hint = "Look before you repeat it."});
    for (std::size_t i = 1; i < writers_.size(); ++i) outcome_.unsettled.push_back(writers_[i].backend->shard);
    co_return false;
  }
  if (!answer.rows) fail_with(outcome_, answer);
  co_return false;
}

// What has been decided happens everywhere, now or when a Settler comes.
io::Task<void> Commit::follow() {
  if (!two_phases()) co_return;
  std::vector<ControlOrder> orders;
  for (std::size_t i = 1; i < writers_.size(); ++i) {
    orders.push_back({writers_[i].backend, "COMMIT PREPARED " + gid_of(i)});
  }
  auto following = round(std::move(orders));
  const Answers answers = co_await std::move(following);
  for (std::size_t i = 1; i < writers_.size(); ++i) {
    const auto& rows = answers[i - 1].rows;
    // A Settler was faster.
    if (rows || rows.error().sqlstate == sqlstate::kUndefinedObject) continue;
    outcome_.unsettled.push_back(writers_[i].backend->shard);
  }
  failpoint("txn.followed");
}

io::Task<void> Commit::undo() {
  outcome_.kind = CommitOutcome::kRolledBack;
  prepared_.resize(writers_.size());
  std::vector<ControlOrder> orders;
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    Backend* backend = writers_[i].backend;
    if (prepared_[i] && backend->broken) outcome_.unsettled.push_back(backend->shard);
    if (prepared_[i] && !backend->broken) orders.push_back({backend, "ROLLBACK PREPARED " + gid_of(i)});
  }
  for (const TransactionBranch& branch : branches_) {
    if (open(branch)) orders.push_back({branch.backend, "ROLLBACK"});
  }
  // The deciding transaction ends first: a Settler that finds it gone rolls back what is prepared, as this
  // does.
  auto undoing = round(orders);
  const Answers answers = co_await std::move(undoing);
  for (std::size_t i = 0; i < orders.size(); ++i) {
    if (answers[i].rows || !orders[i].sql.starts_with("ROLLBACK PREPARED")) continue;
    if (answers[i].rows.error().sqlstate != sqlstate::kUndefinedObject)
      outcome_.unsettled.push_back(orders[i].backend->shard);
  }
}

io::Task<CommitOutcome> Commit::run() {
  bool good = may_commit();
  if (good) {
    auto announcing = end_readers_and_announce();
    good = co_await std::move(announcing);
  }
  if (good && two_phases()) {
    auto preparing = prepare();
    good = co_await std::move(preparing);
  }
  if (good && !writers_.empty()) {
    auto deciding = decide();
    good = co_await std::move(deciding);
  }
  if (good) {
    auto following = follow();
    co_await std::move(following);
  } else if (outcome_.kind != CommitOutcome::kUnknown) {
    auto undoing = undo();
    co_await std::move(undoing);
  }
  co_return std::move(outcome_);
}

}  // namespace

io::Task<CommitOutcome> commit_on_all(std::vector<TransactionBranch> branches, std::string store_id,
                                      bool several_routers, io::Waiter* waiter, Deadline deadline) {
  Commit commit(std::move(branches), std::move(store_id), several_routers, waiter, deadline);
  auto running = commit.run();
  co_return co_await std::move(running);
}

io::Task<void> roll_back_on_all(std::vector<Backend*> backends, io::Waiter* waiter, Deadline deadline) {
  std::vector<ControlOrder> orders;
  for (Backend* backend : backends) {
    if (!backend->broken && backend->status != wire::TransactionStatus::kIdle)
      orders.push_back({backend, "ROLLBACK"});
  }
  auto running = run_on_all(std::move(orders), waiter, deadline);
  (void)co_await std::move(running);
}

TransactionName TransactionName::next(std::string store_id, shardmap::ShardId decider) {
  static const std::string router = random_word();
  static std::atomic<std::uint64_t> last{0};
  return {std::move(store_id), router, ++last, decider};
}

std::string TransactionName::to_string() const {
  return std::string(kPrefix) + ":" + store_id + ":" + router + ":" + std::to_string(number) + ":" +
         std::to_string(decider);
}

std::string TransactionName::of_branch(std::size_t index) const {
  return to_string() + ":" + std::to_string(index);
}

std::optional<TransactionName> TransactionName::parse(std::string_view gid) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t colon = gid.find(':');
    parts.push_back(gid.substr(0, colon));
    if (colon == std::string_view::npos) break;
    gid.remove_prefix(colon + 1);
  }
  if (parts.size() < 5 || parts.size() > 6 || parts[0] != kPrefix) return std::nullopt;
  const auto number = [](std::string_view digits, auto& into) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), into);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  TransactionName name{std::string(parts[1]), std::string(parts[2]), 0, 0};
  std::uint64_t branch = 0;
  if (!number(parts[3], name.number) || !number(parts[4], name.decider)) return std::nullopt;
  if (parts.size() == 6 && !number(parts[5], branch)) return std::nullopt;
  return name;
}

}  // namespace kintsugi::executor
