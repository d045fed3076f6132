#include "executor/moments.h"

#include <algorithm>

namespace kintsugi::executor {
namespace {

using Clock = std::chrono::steady_clock;

// Where commits over several shards come in such distances, another one is to be expected.
constexpr auto kQuietAfter = std::chrono::seconds(2);

bool share_two(const std::vector<ShardId>& a, const std::vector<ShardId>& b) {
  int common = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) {
      if (++common == 2) return true;
      ++i, ++j;
    } else {
      ++(a[i] < b[j] ? i : j);
    }
  }
  return false;
}

}  // namespace

struct Moments::Pass::Ticket {
  bool commits = false;
  bool alone = false;           // of a look
  std::vector<ShardId> shards;  // ascending, each once
  io::Loop* loop = nullptr;
  io::Waiter* waiter = nullptr;  // of the pass's thread; null: it has gone
  std::atomic<bool> inside{false};
  std::chrono::milliseconds patience{0};                           // of a look
  std::atomic<Clock::time_point> until{Clock::time_point::max()};  // then it may be overtaken

  [[nodiscard]] bool minds(const Ticket& other) const {
    return (commits != other.commits || (alone && other.alone)) && share_two(shards, other.shards);
  }
};

Moments::Pass& Moments::Pass::operator=(Pass&& other) noexcept {
  if (this != &other) {
    leave();
    moments_ = other.moments_;
    ticket_ = std::move(other.ticket_);
  }
  return *this;
}

bool Moments::Pass::inside() const {
  if (ticket_ == nullptr || !ticket_->inside.load()) return false;
  // Its patience begins when it learns that it is inside: its thread may have been busy until now.
  if (ticket_->until.load() == Clock::time_point::max()) ticket_->until = Clock::now() + ticket_->patience;
  return true;
}

void Moments::Pass::leave() {
  if (ticket_ == nullptr) return;
  ticket_->waiter = nullptr;
  moments_->left(ticket_.get());
  ticket_.reset();
}

Moments::Pass Moments::look(std::vector<ShardId> shards, io::Waiter* waiter, std::chrono::milliseconds patience,
                            bool alone) {
  auto ticket = std::make_shared<Ticket>();
  ticket->alone = alone;
  ticket->patience = patience;
  return enter(std::move(ticket), std::move(shards), waiter);
}

Moments::Pass Moments::commit(std::vector<ShardId> shards, io::Waiter* waiter) {
  auto ticket = std::make_shared<Ticket>();
  ticket->commits = true;
  return enter(std::move(ticket), std::move(shards), waiter);
}

Moments::Pass Moments::enter(std::shared_ptr<Ticket> ticket, std::vector<ShardId> shards, io::Waiter* waiter) {
  std::ranges::sort(shards);
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  ticket->shards = std::move(shards);
  ticket->loop = &waiter->loop();
  ticket->waiter = waiter;
  std::lock_guard lock(mutex_);
  if (ticket->commits) {
    ++commits_;
    ++begun_;
  }
  tickets_.push_back(ticket);
  admit();
  return {this, std::move(ticket)};
}

void Moments::left(Ticket* ticket) {
  std::lock_guard lock(mutex_);
  if (ticket->commits) {
    last_commit_ = Clock::now().time_since_epoch().count();
    --commits_;
  }
  std::erase_if(tickets_, [ticket](const auto& each) { return each.get() == ticket; });
  admit();
}

// Who minds nobody that is inside or came before goes inside. Who waits for a Settler keeps nobody waiting.
void Moments::admit() {
  for (auto at = tickets_.begin(); at != tickets_.end(); ++at) {
    Ticket& ticket = **at;
    if (ticket.inside) continue;
    if (!ticket.commits && doubtful(ticket.shards)) continue;
    const auto before = [this, &ticket](const auto& other) {
      return ticket.minds(*other) && (other->inside || other->commits || !doubtful(other->shards));
    };
    const auto behind = [&ticket](const auto& other) { return other->inside && ticket.minds(*other); };
    if (std::any_of(tickets_.begin(), at, before) || std::any_of(std::next(at), tickets_.end(), behind))
      continue;
    ticket.inside = true;
    ticket.loop->post([held = *at] {
      if (held->waiter != nullptr) held->waiter->notify();
    });
  }
}

void Moments::overtake() {
  std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  const auto in_the_way = [&](const std::shared_ptr<Ticket>& look) {
    return !look->commits && look->inside && now >= look->until.load() &&
           std::ranges::any_of(tickets_,
                               [&](const auto& other) { return !other->inside && other->minds(*look); });
  };
  for (auto at = tickets_.begin(); at != tickets_.end();) {
    if (!in_the_way(*at)) {
      ++at;
      continue;
    }
    (*at)->inside = false;
    at = tickets_.erase(at);
  }
  admit();
}

std::optional<std::uint64_t> Moments::quiet(const std::vector<ShardId>& shards) const {
  const std::uint64_t begun = begun_.load();
  if (commits_.load() > 0) return std::nullopt;
  const std::int64_t last = last_commit_.load();
  if (last != INT64_MIN && Clock::now() - Clock::time_point(Clock::duration(last)) < kQuietAfter)
    return std::nullopt;
  if (in_doubt(shards)) return std::nullopt;
  return begun;
}

bool Moments::doubtful(const std::vector<ShardId>& shards) const {
  return std::ranges::any_of(shards, [this](ShardId shard) { return doubts_.contains(shard); });
}

void Moments::doubt(const std::vector<ShardId>& shards) {
  std::lock_guard lock(mutex_);
  ++last_doubt_;
  for (const ShardId shard : shards) doubts_[shard] = last_doubt_;
}

std::uint64_t Moments::doubts() const {
  std::lock_guard lock(mutex_);
  return last_doubt_;
}

void Moments::clear(ShardId shard, std::uint64_t doubts) {
  std::lock_guard lock(mutex_);
  const auto found = doubts_.find(shard);
  if (found == doubts_.end() || found->second > doubts) return;
  doubts_.erase(found);
  admit();
}

bool Moments::any_doubt() const {
  std::lock_guard lock(mutex_);
  return !doubts_.empty();
}

bool Moments::in_doubt(const std::vector<ShardId>& shards) const {
  std::lock_guard lock(mutex_);
  return doubtful(shards);
}

}  // namespace kintsugi::executor
