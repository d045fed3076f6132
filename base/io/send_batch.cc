#include "base/io/send_batch.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/invariant.h"

namespace kintsugi::io {
namespace {

constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;

int send_now(int fd, std::string_view bytes) {
  for (;;) {
    const ssize_t put = ::send(fd, bytes.data(), bytes.size(), kFlags);
    if (put >= 0) return static_cast<int>(put);
    if (errno != EINTR) return -errno;
  }
}

// Kernels that have a ring but no send in it answer every one with EINVAL.
bool can_send(io_uring* ring) {
  io_uring_probe* probe = io_uring_get_probe_ring(ring);
  const bool can = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_SEND) != 0;
  io_uring_free_probe(probe);
  return can;
}

}  // namespace

std::unique_ptr<SendBatch> SendBatch::make() {
  std::unique_ptr<SendBatch> batch(new SendBatch);
  // One thread submits, and nothing completes behind its back: the newer kernels need no lock then.
  for (const unsigned flags : {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 0U}) {
    if (io_uring_queue_init(kSlots, &batch->ring_, flags) != 0) continue;
    if (!can_send(&batch->ring_)) {
      io_uring_queue_exit(&batch->ring_);
      continue;
    }
    io_uring_register_ring_fd(&batch->ring_);  // saves looking the ring up; without it all is the same
    return batch;
  }
  batch->broken_ = true;
  return nullptr;
}

SendBatch::~SendBatch() {
  INVARIANT(used_ == 0, "a batch is flushed before it goes");
  if (!broken_) io_uring_queue_exit(&ring_);
}

bool SendBatch::add(Sender& sender, int fd, std::string_view bytes) {
  if (sender.slot_ >= 0) {
    Slot& slot = slots_[static_cast<std::size_t>(sender.slot_)];
    if (bytes.size() <= kSlotBytes - slot.size) {
      std::memcpy(slot.bytes.data() + slot.size, bytes.data(), bytes.size());
      slot.size += bytes.size();
      return true;
    }
    flush();
    return false;
  }
  if (bytes.size() > kSlotBytes) return false;
  if (used_ == kSlots) flush();
  sender.slot_ = static_cast<int>(used_);
  Slot& slot = slots_[used_++];
  slot.sender = &sender;
  slot.fd = fd;
  slot.size = bytes.size();
  std::memcpy(slot.bytes.data(), bytes.data(), bytes.size());
  return true;
}

void SendBatch::flush() {
  if (used_ == 0) return;
  if (used_ == 1 || broken_) {
    send_each();
  } else {
    submit();
  }
}

void SendBatch::send_each() {
  for (unsigned i = 0; i < std::exchange(used_, 0U); ++i) {
    settle(slots_[i], send_now(slots_[i].fd, {slots_[i].bytes.data(), slots_[i].size}));
  }
}

void SendBatch::submit() {
  for (unsigned i = 0; i < used_; ++i) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    INVARIANT(entry != nullptr, "the ring has an entry for every slot");
    io_uring_prep_send(entry, slots_[i].fd, slots_[i].bytes.data(), slots_[i].size, kFlags);
    io_uring_sqe_set_data64(entry, i);
  }
  unsigned submitted = 0, completed = 0;
  while (completed < used_) {
    const int taken = io_uring_submit_and_wait(&ring_, submitted < used_ ? used_ - completed : 1);
    if (taken > 0) submitted += static_cast<unsigned>(taken);
    io_uring_cqe* entry = nullptr;
    unsigned head = 0, seen = 0;
    io_uring_for_each_cqe(&ring_, head, entry) {
      settle(slots_[entry->user_data], entry->res);
      ++seen;
    }
    io_uring_cq_advance(&ring_, seen);
    completed += seen;
    if (taken < 0 && taken != -EINTR && completed == submitted) {
      // What the ring still holds goes with it.
      io_uring_queue_exit(&ring_);
      broken_ = true;
      break;
    }
  }
  const unsigned all = std::exchange(used_, 0U);
  for (unsigned i = submitted; i < all; ++i) {
    settle(slots_[i], send_now(slots_[i].fd, {slots_[i].bytes.data(), slots_[i].size}));
  }
}

void SendBatch::settle(Slot& slot, int result) {
  Sender* sender = std::exchange(slot.sender, nullptr);
  sender->slot_ = -1;
  std::size_t sent = 0;
  int error = 0;
  if (result >= 0) {
    sent = static_cast<std::size_t>(result);
  } else if (result != -EAGAIN && result != -EINTR) {
    error = -result;
  }
  sender->on_sent(std::string_view(slot.bytes.data(), slot.size).substr(sent), error);
}

}  // namespace kintsugi::io
