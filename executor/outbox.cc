#include "executor/outbox.h"

namespace kintsugi::executor {
namespace {
constexpr std::size_t kKeptCapacity = 1024;  // an idle connection keeps no more than this
}

io::IoResult Outbox::flush(io::Stream& stream) {
  while (sent_ < kept_.size()) {
    const io::IoResult result = stream.write(std::string_view(kept_).substr(sent_));
    if (result.kind != io::IoResult::kOk) return result;
    sent_ += result.bytes;
  }
  done();
  while (!direct_.empty()) {
    const io::IoResult result = stream.write(direct_);
    if (result.kind != io::IoResult::kOk) {
      if (result.kind == io::IoResult::kWouldBlock) kept_.assign(direct_);
      direct_ = {};
      return result;
    }
    direct_.remove_prefix(result.bytes);
  }
  return {};
}

void Outbox::clear() {
  direct_ = {};
  done();
}

void Outbox::done() {
  sent_ = 0;
  if (kept_.capacity() > kKeptCapacity) {
    std::string().swap(kept_);  // an assignment would keep the buffer
  } else {
    kept_.clear();
  }
}

}  // namespace kintsugi::executor
