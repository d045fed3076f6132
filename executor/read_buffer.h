// Bytes read from a stream and not yet understood: one piece of memory that grows to what is asked for and no
// further. Views into it are good until the next make_room().
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

namespace kintsugi::executor {

class ReadBuffer {
 public:
  [[nodiscard]] std::string_view unread() const { return {data_.get() + begin_, end_ - begin_}; }
  [[nodiscard]] std::size_t size() const { return end_ - begin_; }
  // Changes in place are allowed.
  [[nodiscard]] char* begin() { return data_.get() + begin_; }

  void drop(std::size_t bytes) {
    begin_ += bytes;
    if (begin_ == end_) begin_ = end_ = 0;
  }

  // Room for at least `bytes` behind what is unread.
  void make_room(std::size_t bytes) {
    if (capacity_ - end_ >= bytes) return;
    const std::size_t wanted = size() + bytes;
    if (wanted <= capacity_) {
      std::memmove(data_.get(), data_.get() + begin_, size());
    } else {
      const std::size_t capacity = std::max(wanted, std::min(capacity_ * 2, wanted + kStep));
      auto larger = std::make_unique_for_overwrite<char[]>(capacity);
      if (size() > 0) std::memcpy(larger.get(), data_.get() + begin_, size());
      data_ = std::move(larger);
      capacity_ = capacity;
    }
    end_ -= begin_;
    begin_ = 0;
  }
  [[nodiscard]] char* room() { return data_.get() + end_; }
  [[nodiscard]] std::size_t room_bytes() const { return capacity_ - end_; }
  void filled(std::size_t bytes) { end_ += bytes; }

  void append(std::string_view bytes) {
    if (bytes.empty()) return;
    make_room(bytes.size());
    std::memcpy(room(), bytes.data(), bytes.size());
    filled(bytes.size());
  }

 private:
  static constexpr std::size_t kStep = 1 << 20;

  std::unique_ptr<char[]> data_;
  std::size_t capacity_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace kintsugi::executor
