#include "admin/commands/command_queue.h"

namespace kintsugi::admin {
namespace {

constexpr std::size_t kThreadsMax = 16;
constexpr std::size_t kWaitingMax = 1000;

}  // namespace

CommandQueue::CommandQueue(std::shared_ptr<const Surroundings> surroundings)
    : surroundings_(std::move(surroundings)) {}

CommandQueue::~CommandQueue() {
  std::deque<Item> left;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    left.swap(items_);
    for (const Ticket& ticket : running_) *ticket = true;
  }
  changed_.notify_all();
  for (Item& item : left) item.on_done(fail(sqlstate::kAdminShutdown, "the router is shutting down"));
  for (std::thread& thread : threads_) thread.join();
}

CommandQueue::Ticket CommandQueue::submit(Command command, Actor actor, Deadline deadline, Done on_done) {
  return submit([command = std::move(command), actor = std::move(actor)](
                    CommandLayer& layer, const CommandRun& run) { return layer.run(command, actor, run); },
                deadline, std::move(on_done));
}

CommandQueue::Ticket CommandQueue::submit(Work work, Deadline deadline, Done on_done) {
  auto ticket = std::make_shared<std::atomic<bool>>(false);
  std::unique_lock lock(mutex_);
  if (stop_ || items_.size() >= kWaitingMax) {
    const bool stopping = stop_;
    lock.unlock();
    on_done(stopping ? fail(sqlstate::kAdminShutdown, "the router is shutting down")
                     : fail(sqlstate::kLimitReached, "too many commands are waiting", "Try again later."));
    return ticket;
  }
  items_.push_back(
      {std::move(work), {.deadline = deadline, .epoch = {}, .canceled = ticket}, ticket, std::move(on_done)});
  if (idle_ < items_.size() && threads_.size() < kThreadsMax) threads_.emplace_back([this] { serve(); });
  lock.unlock();
  changed_.notify_one();
  return ticket;
}

void CommandQueue::serve() {
  CommandLayer layer(surroundings_);
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [this] { return stop_ || !items_.empty(); });
    --idle_;
    if (items_.empty()) return;
    Item item = std::move(items_.front());
    items_.pop_front();
    const Ticket ticket = item.ticket;
    running_.push_back(ticket);
    lock.unlock();
    if (*item.run.canceled) {
      item.on_done(fail(sqlstate::kQueryCanceled, "canceling statement due to user request"));
    } else if (item.run.deadline.passed()) {
      item.on_done(fail(sqlstate::kQueryCanceled, "the command's time was over before it began"));
    } else {
      item.on_done(item.work(layer, item.run));
    }
    item = {};
    lock.lock();
    std::erase(running_, ticket);
  }
}

}  // namespace kintsugi::admin
