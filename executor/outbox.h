// Bytes on their way out of a stream. What can go at once goes straight from the caller's buffer; only what the
// socket does not take is copied and kept. While it is not empty the one who fills it stops reading its source:
// that is the back-pressure, and the bound.
#pragma once

#include <string>
#include <string_view>

#include "base/io/stream.h"

namespace kintsugi::executor {

class Outbox {
 public:
  // The bytes stay where they are until flush(). Neighbouring pieces of one buffer stay one piece.
  void pass(std::string_view bytes) {
    if (bytes.empty()) return;
    if (kept_.empty()) {
      if (direct_.empty()) {
        direct_ = bytes;
        return;
      }
      if (direct_.data() + direct_.size() == bytes.data()) {
        direct_ = {direct_.data(), direct_.size() + bytes.size()};
        return;
      }
    }
    compose().append(bytes);
  }

  // For messages that are made here: append to it.
  std::string& compose() {
    if (!direct_.empty()) {
      kept_.append(direct_);
      direct_ = {};
    }
    return kept_;
  }

  // Writes what can be written and keeps a copy of the rest. kOk: all is out. kWouldBlock: something is kept.
  io::IoResult flush(io::Stream& stream);

  [[nodiscard]] bool empty() const { return kept_.size() == sent_ && direct_.empty(); }
  [[nodiscard]] std::size_t kept_bytes() const { return kept_.size() - sent_; }
  void clear();

 private:
  void done();

  std::string_view direct_;
  std::string kept_;
  std::size_t sent_ = 0;  // of kept_
};

}  // namespace kintsugi::executor
