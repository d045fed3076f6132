#include "shardmap/map_feed.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "shardmap/hasty_store.h"
#include "shardmap/json.h"
#include "shardmap/sqlite_store.h"

namespace kintsugi::shardmap {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kWaitSlice{200};   // how soon a feed that is told to stop does
constexpr milliseconds kRetryAfter{100};  // when the store is away
constexpr milliseconds kStoreDeadline{30000};
constexpr milliseconds kBeatDeadline{2000};
constexpr const char* kRouterNote = "router";

}  // namespace

struct MapFeed::Shared {
  MapFeedOptions options;
  Deliver deliver;

  std::mutex delivering;  // held around each delivery, before `mutex`: maps are handed over in order
  mutable std::mutex mutex;
  std::condition_variable changed;     // for the beating thread, and for start()
  StoredMap current;                   // guarded
  bool delivered = false;              // guarded
  std::optional<std::uint64_t> taken;  // guarded
  std::uint64_t seen = 0;              // guarded
  std::atomic<bool> stop{false};
  std::atomic<bool> reachable{false};
  std::atomic<bool> replaced{false};  // an empty store stands where that of our map was
  std::atomic<Clock::rep> lease_end{0};

  std::unique_ptr<SqliteStore> replica;  // of the watching thread
  std::thread watcher;
  std::thread beater;

  void watch();
  void beat();
  Status catch_up(MapStore& store);
  bool is_replaced(const StoredMap& known, const StoredMap& stored);
  Status heal_history(MapStore& store, StoredMap& stored, std::uint64_t known);
  void hand_over(const StoredMap& stored);
  void deliver_replica_unless_delivered(const StoredMap& kept);
  void sleep_unless_stopped(milliseconds time);
  [[nodiscard]] NoteChange note_of(std::uint64_t epoch, std::uint64_t seen_epoch) const;
  bool renew(MapStore& store, std::uint64_t epoch, std::uint64_t seen_epoch);
  std::string path_of(const std::string& file) const {
    return file.starts_with('/') || options.directory.empty() ? file : options.directory + "/" + file;
  }
};

void MapFeed::Shared::sleep_unless_stopped(milliseconds time) {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, time, [this] { return stop.load(); });
}

void MapFeed::Shared::hand_over(const StoredMap& stored) {
  const std::lock_guard order(delivering);
  deliver(stored.map);
  {
    const std::lock_guard lock(mutex);
    current = stored;
    delivered = true;
  }
  changed.notify_all();
}

void MapFeed::Shared::deliver_replica_unless_delivered(const StoredMap& kept) {
  const std::lock_guard order(delivering);
  {
    const std::lock_guard lock(mutex);
    if (delivered) return;
  }
  if (!replaced) {
    log::warning("the map store is away; starting from the replica",
                 {{"router", options.router}, {"epoch", kept.map->epoch()}});
  }
  deliver(kept.map);
  const std::lock_guard lock(mutex);
  delivered = true;
}

// An empty store, in which nobody has made anything yet, is not a newer version of a map: its file was lost, or
// its database. What this router knows goes on until somebody fills the store.
bool MapFeed::Shared::is_replaced(const StoredMap& known, const StoredMap& stored) {
  const auto nothing_in = [](const ShardMap& map) { return map.shards().empty() && map.mappings().empty(); };
  const bool is = known.map && !nothing_in(*known.map) && nothing_in(*stored.map) &&
                  known.map->store_id() != stored.map->store_id();
  if (is && !replaced) {
    log::error(
        "the map store is empty, and not the one that this router knew; routing goes on with the map as it is",
        {{"router", options.router},
         {"epoch", known.map->epoch()},
         {"hint", "kintsugi recover rebuild fills the store from the shards"}});
  }
  replaced = is;
  changed.notify_all();
  return is;
}

// The store's history is not the one that we know: a fail-over lost commits, or another store stands there.
// Epochs that we have handed over must not come again with another meaning, so the history is lifted above
// them.
Status MapFeed::Shared::heal_history(MapStore& store, StoredMap& stored, std::uint64_t known) {
  log::warning("the map store has another history than this router knew; it is taken from now on",
               {{"router", options.router}, {"epoch_known", known}, {"epoch_stored", stored.map->epoch()}});
  while (stored.map->epoch() <= known) {
    auto lifted = store.commit(stored, {edit::RaiseEpoch{known + 1}}, {}, Deadline::in(kStoreDeadline));
    if (lifted) {
      stored = *std::move(lifted);
    } else if (lifted.error().sqlstate == sqlstate::kSerializationFailure) {
      KG_TRY(stored, store.load(Deadline::in(kStoreDeadline)));
    } else {
      return fail(lifted.error());
    }
  }
  return {};
}

Status MapFeed::Shared::catch_up(MapStore& store) {
  StoredMap known;
  bool first = false;
  {
    const std::lock_guard lock(mutex);
    known = current;
    first = !delivered;
  }
  if (known.map) {
    KG_TRY(const auto edits, store.edits_since(known.map->epoch(), known.token, Deadline::in(kStoreDeadline)));
    // An empty history says nothing of whose it is.
    if (edits && (!known.token.empty() || !edits->empty() || first)) {
      if (edits->empty() && !first) return {};
      StoredMap next = known;
      std::vector<MapPtr> steps;
      bool good = true;
      for (const LoggedEdit& edit : *edits) {
        auto map = apply(*next.map, edit.edit);
        if (!map || (*map)->epoch() != edit.epoch) {
          good = false;
          break;
        }
        next = {*std::move(map), edit.token};
        steps.push_back(next.map);
      }
      if (good) {
        hand_over(next);
        // The replica follows after the routers: nobody waits for it.
        const ShardMap* before = known.map.get();
        for (std::size_t i = 0; i < steps.size(); ++i) {
          if (!replica->follow(*before, (*edits)[i], *steps[i])) return replica->become(next);
          before = steps[i].get();
        }
        return {};
      }
    } else if (edits && known.token.empty()) {
      return {};
    }
  }
  KG_TRY(StoredMap stored, store.load(Deadline::in(kStoreDeadline)));
  if (is_replaced(known, stored))
    return fail(sqlstate::kMapReadOnly, "the map store is another one, and empty");
  if (known.map && stored.map->epoch() == known.map->epoch() && stored.token == known.token && !first)
    return {};
  if (known.map && known.map->epoch() >= stored.map->epoch() && !known.token.empty()) {
    KG_CHECK(heal_history(store, stored, known.map->epoch()));
  }
  hand_over(stored);
  return replica->become(stored);
}

void MapFeed::Shared::watch() {
  std::unique_ptr<MapStore> store;
  bool away = false;  // and that has been said
  while (!stop) {
    Status done;
    if (!store) {
      auto opened = open_store(options.store, options.directory, Deadline::in(kStoreDeadline));
      if (opened) {
        store = *std::move(opened);
      } else {
        done = fail(opened.error());
      }
    }
    if (done && store) done = catch_up(*store);
    while (done && !stop) {
      reachable = true;
      if (std::exchange(away, false)) log::info("the map store answers again", {{"router", options.router}});
      std::uint64_t epoch = 0;
      {
        const std::lock_guard lock(mutex);
        epoch = current.map->epoch();
      }
      const auto look = store->wait(epoch, Deadline::in(kWaitSlice));
      if (!look) {
        done = fail(look.error());
      } else if (*look) {
        done = catch_up(*store);
      }
    }
    if (!done && !stop) {
      if (reachable.exchange(false)) {
        away = true;
        log::warning("the map store does not answer; routing goes on with the map as it is",
                     {{"router", options.router}, {"reason", done.error().message}});
      }
      sleep_unless_stopped(kRetryAfter);
    }
  }
}

NoteChange MapFeed::Shared::note_of(std::uint64_t epoch, std::uint64_t seen_epoch) const {
  Json note = Json::object();
  note["epoch"] = epoch;
  note["seen"] = std::max(epoch, seen_epoch);
  note["lease_ms"] = options.lease.count();
  return {kRouterNote, options.router, note.dump(), {}};
}

// On the store's disk before the lease is longer: a store that has been restarted must wait for us as long as
// we think that it does.
bool MapFeed::Shared::renew(MapStore& store, std::uint64_t epoch, std::uint64_t seen_epoch) {
  const auto sent = Clock::now();
  const bool lapsed = sent.time_since_epoch().count() >= lease_end.load();
  if (!store.put_notes({note_of(epoch, seen_epoch)}, Deadline::in(kBeatDeadline))) return false;
  if (replaced) return false;
  // From here on whoever changes the map waits for us. What was changed while we were not waited for, we must
  // have.
  if (lapsed) {
    const auto newer = store.wait(epoch, Deadline::in(milliseconds(0)));
    if (!newer || *newer) return false;
  }
  lease_end = (sent + options.lease).time_since_epoch().count();
  return true;
}

// The lease is renewed in each beat. How far we are is told at once, and hastily: it is true whatever becomes
// of the store, who does not find it there any more waits until it is told again, and no lease is longer for
// it. Writers of a moving shardlet wait for it, and not for the disk of the store.
void MapFeed::Shared::beat() {
  std::unique_ptr<MapStore> store, hasty;
  std::optional<std::uint64_t> told;
  std::uint64_t told_seen = 0;
  bool renewed = false;
  Clock::time_point due;  // when it is to be renewed again
  while (!stop) {
    std::optional<std::uint64_t> epoch;
    std::uint64_t seen_epoch = 0;
    {
      std::unique_lock lock(mutex);
      changed.wait_until(lock, renewed ? due : Clock::now() + kRetryAfter,
                         [&] { return stop || taken != told || (taken && seen > told_seen); });
      if (stop) break;
      epoch = taken;
      seen_epoch = seen;
    }
    if (!epoch) continue;  // nothing is routed yet
    if (renewed && hasty && Clock::now() < due) {
      told = epoch;
      told_seen = seen_epoch;
      if (hasty->put_notes({note_of(*epoch, seen_epoch)}, Deadline::in(kBeatDeadline))) continue;
      hasty.reset();
    }
    renewed = false;
    if (!store) {
      auto opened = open_store(options.store, options.directory, Deadline::in(kBeatDeadline));
      if (!opened) {
        sleep_unless_stopped(kRetryAfter);
        continue;
      }
      store = *std::move(opened);
    }
    due = Clock::now() + options.beat;
    renewed = renew(*store, *epoch, seen_epoch);
    told = epoch;
    told_seen = seen_epoch;
    if (renewed && !hasty) {
      if (auto opened = open_hasty_store(options.store, options.directory, Deadline::in(kBeatDeadline)))
        hasty = *std::move(opened);
    }
  }
  if (store) (void)store->put_notes({{kRouterNote, options.router, {}, {}}}, Deadline::in(kBeatDeadline));
}

MapFeed::MapFeed(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}

Result<std::unique_ptr<MapFeed>> MapFeed::start(MapFeedOptions options, Deliver deliver) {
  auto shared = std::make_unique<Shared>();
  shared->options = std::move(options);
  shared->deliver = std::move(deliver);
  // It is always a moment behind what has been handed over, and may be so after a power cut, too.
  KG_TRY(shared->replica, SqliteStore::open(shared->path_of(shared->options.replica), SqliteSync::kSometime));
  KG_TRY(StoredMap kept, shared->replica->load(Deadline::never()));
  // An unusable store is told now; one that is only away is not.
  auto probe = open_store(shared->options.store, shared->options.directory,
                          Deadline::in(shared->options.start_patience));
  if (!probe) return fail(probe.error());
  probe->reset();
  if (!kept.token.empty()) shared->current = kept;

  std::unique_ptr<MapFeed> feed(new MapFeed(std::move(shared)));
  Shared& its = *feed->shared_;
  its.watcher = std::thread([&its] { its.watch(); });
  {
    std::unique_lock lock(its.mutex);
    its.changed.wait_for(lock, its.options.start_patience, [&its] { return its.delivered || its.replaced; });
    if (!its.delivered && kept.token.empty()) {
      lock.unlock();
      return fail(sqlstate::kConnectionFailure,
                  "the map store cannot be reached, and this router has no replica of it yet",
                  "Start the store, or check [map] store in the configuration.");
    }
  }
  its.deliver_replica_unless_delivered(kept);
  its.beater = std::thread([&its] { its.beat(); });
  return feed;
}

MapFeed::~MapFeed() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->changed.notify_all();
  if (shared_->watcher.joinable()) shared_->watcher.join();
  if (shared_->beater.joinable()) shared_->beater.join();
}

void MapFeed::seen(std::uint64_t epoch) {
  {
    const std::lock_guard lock(shared_->mutex);
    if (epoch <= shared_->seen) return;
    shared_->seen = epoch;
  }
  shared_->changed.notify_all();
}

void MapFeed::taken(std::uint64_t epoch) {
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->taken && epoch <= *shared_->taken) return;
    shared_->taken = epoch;
  }
  shared_->changed.notify_all();
}

bool MapFeed::lease_valid() const {
  return Clock::now().time_since_epoch().count() < shared_->lease_end.load();
}

Clock::time_point MapFeed::lease_end() const {
  return Clock::time_point(Clock::duration(shared_->lease_end.load()));
}

bool MapFeed::store_reachable() const {
  return shared_->reachable;
}

StoredMap MapFeed::current() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->current;
}

Result<std::vector<RouterState>> routers(MapStore& store, Deadline deadline) {
  KG_TRY(const auto notes, store.notes(kRouterNote, deadline));
  std::vector<RouterState> all;
  for (const Note& note : notes) {
    KG_TRY(const Json body, parse_json(note.body));
    const auto epoch = body.value("epoch", std::uint64_t{0});
    all.push_back({note.key, epoch, std::max(epoch, body.value("seen", std::uint64_t{0})), note.age_ms,
                   body.value("lease_ms", std::int64_t{0})});
  }
  return all;
}

namespace {

constexpr std::chrono::seconds kLastAnswer{2};

// Waits until `member` of every live router is at least `epoch`.
Result<std::vector<RouterState>> wait_for_routers(MapStore& store, std::uint64_t RouterState::*member,
                                                  std::uint64_t epoch, std::string_view what,
                                                  Deadline deadline) {
  for (;;) {
    // A question that is under way when the time is up is heard to its end: who is missing is in its answer.
    KG_TRY(const auto all, routers(store, Deadline::in(kLastAnswer)));
    std::vector<RouterState> gone;
    std::string missing;
    for (const RouterState& router : all) {
      if (router.*member >= epoch) continue;
      if (router.alive()) {
        missing += (missing.empty() ? "" : ", ") + router.name;
      } else {
        gone.push_back(router);
      }
    }
    if (missing.empty()) return gone;
    if (deadline.passed()) {
      return fail(sqlstate::kQueryCanceled, "these routers have not " + std::string(what) + " epoch " +
                                                std::to_string(epoch) + " in time: " + missing);
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
}

}  // namespace

Result<std::vector<RouterState>> wait_until_taken(MapStore& store, std::uint64_t epoch, Deadline deadline) {
  return wait_for_routers(store, &RouterState::epoch, epoch, "taken", deadline);
}

Result<std::vector<RouterState>> wait_until_seen(MapStore& store, std::uint64_t epoch, Deadline deadline) {
  return wait_for_routers(store, &RouterState::seen, epoch, "seen", deadline);
}

}  // namespace kintsugi::shardmap
