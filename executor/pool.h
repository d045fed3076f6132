// Connections to one shard as one role, kept by each thread for itself under one limit for the whole process.
//
// A thread takes from its own idle connections first, then opens one while the limit allows, then waits its
// turn. A thread that must wait tells the others; one with an idle connection hands it over, socket and all. A
// queue that stands for a while is remembered by all of them: what comes back next goes there.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "base/config.h"
#include "base/io/gate.h"
#include "executor/connect_shard.h"

namespace kintsugi::executor {

class ThreadPools;
class BackendPool;

// The process-wide side of a pool: how many connections are open, and who may have to wait. Any thread.
class PoolSlots {
 public:
  PoolSlots(std::shared_ptr<const ShardLogin> login, int limit) : login_(std::move(login)), limit_(limit) {}

  bool try_reserve();
  void give_back() { open_.fetch_sub(1, std::memory_order_acq_rel); }
  [[nodiscard]] int open() const { return open_.load(std::memory_order_relaxed); }
  [[nodiscard]] int limit() const { return limit_; }
  [[nodiscard]] const std::shared_ptr<const ShardLogin>& login() const { return login_; }

  // What the shard reported to the first connection with these startup options; nothing while there was none. A
  // client can be greeted with it although no connection is free.
  [[nodiscard]] SettingsRef greeting(const SettingsRef& startup);
  void note_greeting(const SettingsRef& startup, const SettingsRef& reported);

  // Settings with a dot that functions of this database may set; nothing while that is not known, or may be
  // old.
  [[nodiscard]] std::optional<std::vector<std::string>> function_settings();
  void note_function_settings(std::vector<std::string> names);

  // What transactions have that do not ask for another isolation; nothing while it may have been changed since.
  [[nodiscard]] std::optional<std::string> default_isolation();
  void note_default_isolation(std::string name);

  std::atomic<int> waiting{0};  // clients, over all threads

 private:
  struct FunctionSettings {
    std::vector<std::string> names;
    std::uint64_t generation = 0;  // of the schema
    Deadline until = Deadline::never();
  };
  std::mutex functions_mutex_;
  std::optional<FunctionSettings> functions_;
  std::optional<std::pair<std::string, Deadline>> isolation_;
  std::mutex greetings_mutex_;
  std::map<SettingsRef, SettingsRef> greetings_;
  std::size_t greetings_kept_ = 0;  // when those were forgotten last that nobody asks for
  std::shared_ptr<const ShardLogin> login_;
  int limit_;
  std::atomic<int> open_{0};
};

// A connection taken out of its pool. Going out of scope gives it back; one that is broken, inside a
// transaction or still has something outstanding is closed instead.
class BackendLease {
 public:
  BackendLease() = default;
  BackendLease(BackendPool* pool, std::unique_ptr<Backend> backend)
      : pool_(pool), backend_(std::move(backend)) {}
  BackendLease(BackendLease&& other) noexcept = default;
  BackendLease& operator=(BackendLease&& other) noexcept {
    if (this != &other) {
      release();
      pool_ = other.pool_;
      backend_ = std::move(other.backend_);
    }
    return *this;
  }
  ~BackendLease() { release(); }

  void release();
  explicit operator bool() const { return backend_ != nullptr; }
  Backend* operator->() const { return backend_.get(); }
  Backend& operator*() const { return *backend_; }
  [[nodiscard]] Backend* get() const { return backend_.get(); }

 private:
  BackendPool* pool_ = nullptr;
  std::unique_ptr<Backend> backend_;
};

// One thread's pool for a shard, a role and a set of startup options (a RESET must lead back to what the
// client's own startup packet said, so connections with different ones do not mix).
class BackendPool final : public io::EventTarget {
 public:
  BackendPool(ThreadPools& owner, std::shared_ptr<PoolSlots> slots, SettingsRef startup);
  ~BackendPool();

  // An idle connection at once, preferably one that already has these settings applied.
  BackendLease try_acquire(const SettingsRef& wanted);
  // Waits for one. `gone` is asked at every wake-up: true gives up (the client has left, or was cancelled).
  io::Task<Result<BackendLease>> acquire(SettingsRef wanted, io::Waiter* waiter, Deadline deadline,
                                         std::function<Status()> still_wanted);

  // What the shard reports to a new session; known once a connection has been made.
  [[nodiscard]] const SettingsRef& reported();
  [[nodiscard]] const std::shared_ptr<PoolSlots>& slots() const { return slots_; }
  [[nodiscard]] const SettingsRef& startup() const { return startup_; }
  [[nodiscard]] std::size_t idle() const { return idle_.size(); }
  [[nodiscard]] std::size_t owned() const { return owned_; }

  void on_event(io::Watch& watch, std::uint32_t ready) override;  // an idle connection spoke or died

 private:
  friend class BackendLease;
  friend class PoolUse;
  friend class ThreadPools;

  struct Ticket {
    io::Waiter* waiter;
    std::unique_ptr<Backend> backend;  // given, or
    bool may_connect = false;          // a reserved slot given
  };

  void take_back(std::unique_ptr<Backend> backend);
  void keep_idle(std::unique_ptr<Backend> backend);
  void adopt(std::unique_ptr<Backend> backend);  // from another thread
  std::unique_ptr<Backend> take_idle(const SettingsRef* wanted);
  void close(std::unique_ptr<Backend> backend);
  void drop(std::unique_ptr<Backend> backend);
  void slot_freed();
  bool serve_slot();
  bool use_slot();
  void sweep(Deadline::Clock::time_point oldest);
  io::Task<Result<BackendLease>> connect(io::Waiter* waiter, Deadline deadline,
                                         std::function<Status()> still_wanted);
  BackendLease lease(std::unique_ptr<Backend> backend);
  void leave(Ticket& ticket);
  void ask_for_room(bool of_busy_ones);
  bool serve(std::unique_ptr<Backend>& backend);

  ThreadPools& owner_;
  std::shared_ptr<PoolSlots> slots_;
  SettingsRef startup_;
  SettingsRef reported_ = Settings::none();
  std::vector<std::unique_ptr<Backend>> idle_;  // the one used last is last
  std::deque<Ticket*> waiting_;
  io::Timer impatience_;   // runs while somebody waits
  std::size_t owned_ = 0;  // leased and idle here
  std::size_t uses_ = 0;   // PoolUses
  bool forgettable_ = false;
  Deadline::Clock::time_point unused_since_;
};

// Somebody keeps a pointer to this pool. A pool that had users and has none any more, and no connection, is
// forgotten after a while: there are as many pools as clients find startup options to ask for. One that never
// had any stays.
class PoolUse {
 public:
  PoolUse() = default;
  explicit PoolUse(BackendPool& pool);
  PoolUse(PoolUse&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)) {}
  PoolUse& operator=(PoolUse&& other) noexcept {
    std::swap(pool_, other.pool_);
    return *this;
  }
  ~PoolUse();
  [[nodiscard]] BackendPool* get() const { return pool_; }

 private:
  BackendPool* pool_ = nullptr;
};

// The slots of every shard and role, and the threads that share them. Any thread.
class PoolDirectory {
 public:
  explicit PoolDirectory(PoolConfig config) : config_(config) {}

  std::shared_ptr<PoolSlots> slots_for(const std::shared_ptr<const ShardLogin>& login);
  void join(ThreadPools* thread);
  void leave(ThreadPools* thread);
  // Runs `work` on every thread but the caller's.
  void tell_others(ThreadPools* self, const std::function<void(ThreadPools&)>& work);
  [[nodiscard]] const PoolConfig& config() const { return config_; }

  // For statistics.
  template <class Visitor>
  void each_slots(Visitor&& visit) {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, slots] : slots_) visit(*slots);
  }

 private:
  PoolConfig config_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<PoolSlots>> slots_;
  std::vector<ThreadPools*> threads_;
};

// Who waits, and for a connection with which startup options.
struct Need {
  ThreadPools* thread = nullptr;
  SettingsRef startup;
  friend bool operator==(const Need&, const Need&) = default;
};

// All pools of one thread.
class ThreadPools {
 public:
  ThreadPools(io::Loop& loop, PoolDirectory& directory);
  ~ThreadPools();

  BackendPool& pool_for(const std::shared_ptr<const ShardLogin>& login, const SettingsRef& startup);

  // A client, perhaps another thread's, waits for this shard and role: give it an idle connection or, when that
  // one has other startup options, its slot; or remember it.
  void help(const std::shared_ptr<PoolSlots>& slots, const Need& need, bool remember);
  void slot_freed(const PoolSlots* slots);

  [[nodiscard]] io::Loop& loop() { return loop_; }
  [[nodiscard]] PoolDirectory& directory() { return directory_; }
  [[nodiscard]] const PoolConfig& config() const { return directory_.config(); }
  // Closes what is idle; what is leased closes when it comes back.
  void shut_down();
  // Closes what has been idle for too long and forgets pools that nobody uses. Runs by itself every ten
  // seconds.
  void sweep(Deadline::Clock::time_point now);
  [[nodiscard]] std::size_t pools() const { return pools_.size(); }

  template <class Visitor>
  void each(Visitor&& visit) {
    for (auto& [key, pool] : pools_) visit(*pool);
  }

 private:
  friend class BackendPool;
  bool pay_debt(BackendPool& pool, std::unique_ptr<Backend>& backend);
  void give(BackendPool& pool, std::unique_ptr<Backend> backend, const Need& need);
  void take_slot(const std::shared_ptr<PoolSlots>& slots, const SettingsRef& startup);

  using Key = std::pair<const PoolSlots*, const Settings*>;
  io::Loop& loop_;
  PoolDirectory& directory_;
  std::map<Key, std::unique_ptr<BackendPool>> pools_;
  std::map<const PoolSlots*, std::deque<Need>> debts_;
  io::Timer sweep_timer_;
  bool shutting_down_ = false;
};

}  // namespace kintsugi::executor
