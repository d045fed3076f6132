// Commands for callers that may not block: each runs on a thread of the queue, with a CommandLayer of that
// thread's own. Threads are made when they are needed, up to a bound; more commands wait their turn, up to a
// bound as well (53400 beyond).
//
// Any thread may submit and cancel. `on_done` is called once, on a thread of the queue: post from there to
// wherever you belong.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "admin/commands/command_layer.h"

namespace kintsugi::admin {

class CommandQueue {
 public:
  using Done = std::function<void(Result<CommandResult> result)>;
  // Any work with a command layer: for callers that record tables.
  using Work = std::function<Result<CommandResult>(CommandLayer& layer, const CommandRun& run)>;

  // Cancels what was submitted with it: not yet begun, it ends with 57014 at its turn; a job that is waited for
  // is waited for no longer; what is being done is done.
  using Ticket = std::shared_ptr<std::atomic<bool>>;

  explicit CommandQueue(std::shared_ptr<const Surroundings> surroundings);
  ~CommandQueue();  // what waits is answered with 57P01; what runs is canceled and waited for
  CommandQueue(const CommandQueue&) = delete;
  CommandQueue& operator=(const CommandQueue&) = delete;

  Ticket submit(Command command, Actor actor, Deadline deadline, Done on_done);
  Ticket submit(Work work, Deadline deadline, Done on_done);

 private:
  struct Item {
    Work work;
    CommandRun run;
    Ticket ticket;
    Done on_done;
  };
  void serve();

  std::shared_ptr<const Surroundings> surroundings_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  std::vector<Ticket> running_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool stop_ = false;
};

}  // namespace kintsugi::admin
