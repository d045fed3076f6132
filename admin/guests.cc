#include "admin/guests.h"

#include <algorithm>

#include "admin/peer_stream.h"
#include "base/invariant.h"

namespace kintsugi::admin {

thread_local Guests::Guest* Guests::here_ = nullptr;

Guests::~Guests() {
  INVARIANT(threads_.empty(), "who opens the house closes it");
}

void Guests::enqueue(std::function<void()> serve) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(serve));
  if (queue_.size() > threads_.size() - busy_ && threads_.size() < most_) {
    threads_.emplace_back([this] { work(); });
    return;
  }
  make_room();
  changed_.notify_one();
}

// One guest goes for each who waits at the door and finds no thread that is free or about to be.
void Guests::make_room() {
  if (closing_) return;
  while (queue_.size() > threads_.size() - busy_ + leaving_) {
    const auto before = [](const Guest& one, const Guest& other) {
      const auto rank = [](const Guest& guest) { return std::tuple(guest.has_token, guest.since); };
      return rank(one) < rank(other);
    };
    Guest* first = nullptr;
    for (Guest& guest : guests_) {
      if (guest.phase == Phase::kWorking || guest.sent_away) continue;
      if (first == nullptr || before(guest, *first)) first = &guest;
    }
    if (first == nullptr) return;
    first->sent_away = true;
    ++leaving_;
    first->stream->cut_off();
  }
}

void Guests::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    ++busy_;
    const std::function<void()> serve = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    serve();
    lock.lock();
  }
}

void Guests::shutdown() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (const Guest& guest : guests_) {
      if (guest.phase == Phase::kIdle) guest.stream->cut_off();
    }
    threads.swap(threads_);
    changed_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
}

Guests::Stay::Stay(Guests& guests, PeerStream& stream) : guests_(guests) {
  const std::lock_guard lock(guests_.mutex_);
  here_ = &guests_.guests_.emplace_back(Guest{.stream = &stream, .house = &guests_});
  if (guests_.closing_) stream.cut_off();
  guests_.make_room();  // who came later may have found nobody to send away
}

Guests::Stay::~Stay() {
  const std::lock_guard lock(guests_.mutex_);
  --guests_.busy_;
  if (here_->sent_away) --guests_.leaving_;
  guests_.guests_.remove_if([](const Guest& guest) { return &guest == here_; });
  here_ = nullptr;
}

void Guests::enter(Phase phase) {
  if (here_ == nullptr) return;
  Guests& house = *here_->house;
  const std::lock_guard lock(house.mutex_);
  here_->phase = phase;
  here_->since = std::chrono::steady_clock::now();
  if (phase != Phase::kWorking) house.make_room();
}

void Guests::head_is_read(bool has_token) {
  if (here_ == nullptr) return;
  const std::lock_guard lock(here_->house->mutex_);
  here_->phase = Phase::kTalking;
  here_->has_token = has_token;
  here_->stream->head_is_read();
}

void Guests::is_last_request() {
  if (here_ == nullptr) return;
  const std::lock_guard lock(here_->house->mutex_);
  here_->last = true;
}

bool Guests::wants_another() {
  if (here_ == nullptr) return false;
  const std::lock_guard lock(here_->house->mutex_);
  here_->phase = Phase::kIdle;
  here_->has_token = false;
  here_->since = std::chrono::steady_clock::now();
  return !here_->house->closing_ && !here_->last;
}

}  // namespace kintsugi::admin
