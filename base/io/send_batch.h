// The small sends of one round of a loop, given to the kernel in one system call.
//
// A send of its own costs more than its entry into the kernel: it wakes the process that reads, and on a busy
// machine that process goes first, once for every send. Together they cost one such change. Where io_uring is
// not to be had (an old kernel, a container that forbids it) there is no batch and every send is its own, which
// is as right and slower.
//
// Belongs to the thread that made it.
#pragma once

#include <liburing.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string_view>

namespace kintsugi::io {

class SendBatch {
 public:
  // One that sends. It is told how far its bytes went, and must be there to hear it: who goes away flushes
  // before.
  class Sender {
   public:
    // `unsent` stands in the batch and is to be copied; `error` is an errno, or 0. The full socket is not an
    // error.
    virtual void on_sent(std::string_view unsent, int error) = 0;

   protected:
    virtual ~Sender() = default;
    friend class SendBatch;
    int slot_ = -1;  // of the batch that holds bytes of it; a batch has one slot a sender, or a short send
                     // would be followed by bytes that belong behind it
  };

  static constexpr std::size_t kSlotBytes = 2048;
  static constexpr unsigned kSlots = 32;  // so many wait for each other at the most

  // Null: this system has no io_uring for us.
  static std::unique_ptr<SendBatch> make();
  ~SendBatch();
  SendBatch(const SendBatch&) = delete;
  SendBatch& operator=(const SendBatch&) = delete;

  // Copies the bytes. False: too many, and nothing of this sender is in the batch any more; it sends them
  // itself.
  bool add(Sender& sender, int fd, std::string_view bytes);
  void flush();

 private:
  struct Slot {
    Sender* sender = nullptr;
    int fd = -1;
    std::size_t size = 0;
    std::array<char, kSlotBytes> bytes;
  };

  SendBatch() = default;
  void send_each();
  void submit();
  void settle(Slot& slot, int result);

  io_uring ring_{};
  bool broken_ = false;  // the kernel has refused to take what it was given: every send is its own from now on
  unsigned used_ = 0;
  std::array<Slot, kSlots> slots_;
};

}  // namespace kintsugi::io
