// Who is being served at the admin listener, each on a thread. The house has room for so many; when it is full
// and one more comes, the one that has let us wait longest has to go, first of those who have shown no token.
// So nobody can keep others out by being slow, and nobody is sent away while we work for them. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

namespace kintsugi::admin {

class PeerStream;

class Guests {
 public:
  explicit Guests(std::size_t most) : most_(most) {}
  ~Guests();  // after shutdown()
  Guests(const Guests&) = delete;
  Guests& operator=(const Guests&) = delete;

  void enqueue(std::function<void()> serve);  // on a thread of its own, where it makes one Stay
  void shutdown();                            // cuts off who lets us wait, and returns when all have gone

  // A connection on this thread, from its first byte to its last.
  class Stay {
   public:
    Stay(Guests& guests, PeerStream& stream);
    ~Stay();
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

   private:
    Guests& guests_;
  };

  // While this lives we work for the connection of this thread; before and after, we wait for it.
  class AtWork {
   public:
    AtWork() { enter(Phase::kWorking); }
    ~AtWork() { enter(Phase::kTalking); }
    AtWork(const AtWork&) = delete;
    AtWork& operator=(const AtWork&) = delete;
  };

  static void head_is_read(bool has_token);  // of this thread's request
  static void is_last_request();             // nothing more is read of this thread's connection
  static bool wants_another();               // request of it: nor when the house closes

 private:
  enum class Phase : std::uint8_t { kIdle, kTalking, kWorking };  // idle: there is no whole head of a request
  struct Guest {
    PeerStream* stream;
    Guests* house;
    Phase phase = Phase::kIdle;
    bool has_token = false, sent_away = false, last = false;
    std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();  // we wait
  };
  static void enter(Phase phase);
  void work();
  void make_room();  // the lock is held
  static thread_local Guest* here_;

  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::vector<std::thread> threads_;
  std::list<Guest> guests_;
  std::size_t busy_ = 0, leaving_ = 0;  // threads that serve; guests who were sent away and are still here
  bool closing_ = false;
};

}  // namespace kintsugi::admin
