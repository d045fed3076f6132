// The frame of PostgreSQL's protocol 3: one type byte, a 32-bit length that counts itself, a body.
// Bytes in, values out: nothing here knows a socket, nothing allocates, nothing trusts a length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace kintsugi::wire {

inline constexpr std::size_t kHeaderBytes = 5;

inline std::uint16_t load_u16(const char* at) {
  auto* p = reinterpret_cast<const unsigned char*>(at);
  return static_cast<std::uint16_t>((p[0] << 8) | p[1]);
}
inline std::uint32_t load_u32(const char* at) {
  auto* p = reinterpret_cast<const unsigned char*>(at);
  return (std::uint32_t{p[0]} << 24) | (std::uint32_t{p[1]} << 16) | (std::uint32_t{p[2]} << 8) | p[3];
}
inline void store_u32(char* at, std::uint32_t value) {
  at[0] = static_cast<char>(value >> 24);
  at[1] = static_cast<char>(value >> 16);
  at[2] = static_cast<char>(value >> 8);
  at[3] = static_cast<char>(value);
}

// A whole frame within somebody else's buffer: valid as long as that buffer stands still.
struct Frame {
  char type = 0;
  std::string_view body;

  [[nodiscard]] std::size_t size() const { return kHeaderBytes + body.size(); }
  // Header and body as they came.
  [[nodiscard]] std::string_view bytes() const { return {body.data() - kHeaderBytes, size()}; }
};

struct FrameHead {
  char type = 0;
  std::uint32_t body_size = 0;
  [[nodiscard]] std::size_t frame_size() const { return kHeaderBytes + std::size_t{body_size}; }
};

// The head of the first frame in `bytes`: nothing when fewer than five bytes are there, an error (08P01) when the
// length is below four or the body above `max_body`.
Result<std::optional<FrameHead>> peek_head(std::string_view bytes, std::uint64_t max_body);

// The first frame, whole: nothing while bytes are missing.
Result<std::optional<Frame>> peek_frame(std::string_view bytes, std::uint64_t max_body);

// Reads a body field by field. The first field that does not fit makes the reader fail for good: read everything,
// then ask `ok()` (or `done()`: ok and nothing left over) once.
class BodyReader {
 public:
  explicit BodyReader(std::string_view body) : rest_(body) {}

  std::uint8_t u8();
  std::uint16_t u16();
  std::uint32_t u32();
  std::int16_t i16() { return static_cast<std::int16_t>(u16()); }
  std::int32_t i32() { return static_cast<std::int32_t>(u32()); }
  std::string_view cstring();             // without its terminating zero
  std::string_view bytes(std::size_t n);  // exactly n
  std::string_view rest();                // all that is left

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool done() const { return ok_ && rest_.empty(); }
  [[nodiscard]] std::size_t left() const { return rest_.size(); }

 private:
  std::string_view take(std::size_t n);
  std::string_view rest_;
  bool ok_ = true;
};

// Appends one frame to `out`; the length is filled in by `end()` (or the destructor). One at a time per string.
class FrameWriter {
 public:
  FrameWriter(std::string& out, char type);
  ~FrameWriter() { end(); }
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;

  FrameWriter& u8(std::uint8_t value);
  FrameWriter& u16(std::uint16_t value);
  FrameWriter& u32(std::uint32_t value);
  FrameWriter& i16(std::int16_t value) { return u16(static_cast<std::uint16_t>(value)); }
  FrameWriter& i32(std::int32_t value) { return u32(static_cast<std::uint32_t>(value)); }
  FrameWriter& cstring(std::string_view text);  // cut at an embedded zero: nothing can be smuggled behind it
  FrameWriter& bytes(std::string_view raw);
  void end();

 private:
  std::string& out_;
  std::size_t length_at_;
  bool open_ = true;
};

}  // namespace kintsugi::wire
