// The frame of PostgreSQL's protocol 3: one type byte, a 32-bit length that counts itself, a body.
// Bytes in, values out: nothing here knows a socket, nothing allocates, nothing trusts a length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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
inline void store_u16(char* at, std::uint16_t value) {
  at[0] = static_cast<char>(value >> 8);
  at[1] = static_cast<char>(value);
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

namespace frame_error {
// Out of line and cold: the words PostgreSQL itself uses, all with SQLSTATE 08P01.
[[gnu::cold]] tl::unexpected<Error> invalid_length();  // "invalid message length"
[[gnu::cold]] tl::unexpected<Error> invalid_format();  // "invalid message format"
[[gnu::cold]] tl::unexpected<Error> violation(std::string message);
}  // namespace frame_error

// The head of the first frame in `bytes`: nothing when fewer than five bytes are there, an error (08P01) when
// the length is below four or the body above `max_body`.
inline Result<std::optional<FrameHead>> peek_head(std::string_view bytes, std::uint64_t max_body) {
  if (bytes.size() < kHeaderBytes) return std::optional<FrameHead>();
  std::uint32_t length = load_u32(bytes.data() + 1);
  if (length < 4 || length - 4 > max_body) [[unlikely]]
    return frame_error::invalid_length();
  return FrameHead{bytes[0], length - 4};
}

// The first frame, whole: nothing while bytes are missing.
inline Result<std::optional<Frame>> peek_frame(std::string_view bytes, std::uint64_t max_body) {
  if (bytes.size() < kHeaderBytes) return std::optional<Frame>();
  std::uint32_t length = load_u32(bytes.data() + 1);
  if (length < 4 || length - 4 > max_body) [[unlikely]]
    return frame_error::invalid_length();
  std::size_t body_size = length - 4;
  if (bytes.size() - kHeaderBytes < body_size) return std::optional<Frame>();
  return Frame{bytes[0], bytes.substr(kHeaderBytes, body_size)};
}

// Reads a body field by field. The first field that does not fit makes the reader fail for good, and everything
// read from then on is zero or empty: read everything, then ask `ok()`, `done()` (ok and nothing left over) or
// `finish()` (the same with PostgreSQL's error) once.
class BodyReader {
 public:
  explicit BodyReader(std::string_view body) : rest_(body) {}

  std::uint8_t u8() {
    const char* at = take(1, Fault::kNoByte);
    return at ? static_cast<std::uint8_t>(*at) : 0;
  }
  std::uint16_t u16() {
    const char* at = take(2, Fault::kShort);
    return at ? load_u16(at) : 0;
  }
  std::uint32_t u32() {
    const char* at = take(4, Fault::kShort);
    return at ? load_u32(at) : 0;
  }
  std::int16_t i16() { return static_cast<std::int16_t>(u16()); }
  std::int32_t i32() { return static_cast<std::int32_t>(u32()); }
  // Without its terminating zero.
  std::string_view cstring() {
    std::size_t end = rest_.find('\0');
    if (end == std::string_view::npos) [[unlikely]] {
      give_up(Fault::kString);
      return {};
    }
    std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }
  // Exactly n.
  std::string_view bytes(std::size_t n) {
    const char* at = take(n, Fault::kShort);
    return at ? std::string_view{at, n} : std::string_view{};
  }
  // All that is left.
  std::string_view rest() { return std::exchange(rest_, {}); }

  [[nodiscard]] bool ok() const { return fault_ == Fault::kNone; }
  [[nodiscard]] bool done() const { return ok() && rest_.empty(); }
  [[nodiscard]] std::size_t left() const { return rest_.size(); }
  // 08P01 in PostgreSQL's words for the first thing that went wrong, or for bytes left over.
  [[nodiscard]] Status finish() const {
    if (done()) [[likely]]
      return {};
    return error();
  }
  // Fails the reader from outside: a count that cannot fit in what is left.
  void fail_short() { give_up(Fault::kShort); }

 private:
  enum class Fault : std::uint8_t { kNone, kNoByte, kShort, kString };

  // The address of the next n bytes; null (and failed) when they are not there. Never null for n = 0 while ok.
  const char* take(std::size_t n, Fault otherwise) {
    if (!ok() || rest_.size() < n) [[unlikely]] {
      give_up(otherwise);
      return nullptr;
    }
    const char* at = rest_.data();
    rest_.remove_prefix(n);
    return at;
  }
  void give_up(Fault fault) {
    if (ok()) fault_ = fault;
    rest_ = {};
  }
  [[nodiscard, gnu::cold]] tl::unexpected<Error> error() const;

  std::string_view rest_;
  Fault fault_ = Fault::kNone;
};

// Appends one frame to `out`; the length is filled in by `end()` (or the destructor). One at a time per string.
// A frame of ours that would not fit its 32-bit length is a broken promise: whoever builds one has bounded it
// before.
class FrameWriter {
 public:
  FrameWriter(std::string& out, char type) : out_(out), length_at_(out.size() + 1) {
    const char head[kHeaderBytes] = {type, 0, 0, 0, 0};
    out_.append(head, kHeaderBytes);
  }
  ~FrameWriter() { end(); }
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;

  FrameWriter& u8(std::uint8_t value) {
    out_.push_back(static_cast<char>(value));
    return *this;
  }
  FrameWriter& u16(std::uint16_t value) {
    char raw[2];
    store_u16(raw, value);
    out_.append(raw, 2);
    return *this;
  }
  FrameWriter& u32(std::uint32_t value) {
    char raw[4];
    store_u32(raw, value);
    out_.append(raw, 4);
    return *this;
  }
  FrameWriter& i16(std::int16_t value) { return u16(static_cast<std::uint16_t>(value)); }
  FrameWriter& i32(std::int32_t value) { return u32(static_cast<std::uint32_t>(value)); }
  // Cut at an embedded zero: nothing can be smuggled behind it.
  FrameWriter& cstring(std::string_view text) {
    out_.append(text.substr(0, text.find('\0')));
    out_.push_back('\0');
    return *this;
  }
  FrameWriter& bytes(std::string_view raw) {
    out_.append(raw);
    return *this;
  }
  void end();

 private:
  std::string& out_;
  std::size_t length_at_;
  bool open_ = true;
};

}  // namespace kintsugi::wire
