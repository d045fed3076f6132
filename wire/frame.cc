#include "wire/frame.h"

#include "base/invariant.h"

namespace kintsugi::wire {

namespace frame_error {
tl::unexpected<Error> violation(std::string message) {
  return fail(sqlstate::kProtocolViolation, std::move(message));
}
tl::unexpected<Error> invalid_length() {
  return violation("invalid message length");
}
tl::unexpected<Error> invalid_format() {
  return violation("invalid message format");
}
}  // namespace frame_error

tl::unexpected<Error> BodyReader::error() const {
  switch (fault_) {
    case Fault::kNoByte: return frame_error::violation("no data left in message");
    case Fault::kShort: return frame_error::violation("insufficient data left in message");
    case Fault::kString: return frame_error::violation("invalid string in message");
    case Fault::kNone: break;
  }
  return frame_error::invalid_format();
}

void FrameWriter::end() {
  if (!open_) return;
  open_ = false;
  std::size_t length = out_.size() - length_at_;
  INVARIANT(length <= INT32_MAX, "a frame that we write fits its 32-bit length");
  store_u32(out_.data() + length_at_, static_cast<std::uint32_t>(length));
}

}  // namespace kintsugi::wire
