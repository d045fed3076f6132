#include "shardmap/large_pages.h"

#include <sys/mman.h>

#include <new>

namespace kintsugi::shardmap {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kPiece = std::size_t{2} << 20;
constexpr std::size_t kBlockMax = kPiece / 16;  // what the end of a piece may lose

std::size_t whole_lines(std::size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

std::shared_ptr<std::byte> aligned(std::size_t bytes, std::size_t alignment) {
  const std::align_val_t align{alignment};
  return {static_cast<std::byte*>(::operator new(bytes, align)),
          [align](std::byte* done) { ::operator delete(done, align); }};
}

}  // namespace

LargePages::Block take_alone(std::size_t front, std::size_t back) {
  const std::shared_ptr<std::byte> memory = aligned(whole_lines(front) + back, kLine);
  return {memory, memory.get(), memory.get() + whole_lines(front)};
}

LargePages::Block LargePages::take(std::size_t front, std::size_t back) {
  if (front + back > kBlockMax) return take_alone(front, back);
  front = whole_lines(front);
  back = whole_lines(back);
  if (back_ - front_ < front + back) {
    piece_ = aligned(kPiece, kPiece);
    madvise(piece_.get(), kPiece, MADV_HUGEPAGE);  // a wish: without it all is as right, and slower
    front_ = 0;
    back_ = kPiece;
  }
  back_ -= back;
  front_ += front;
  return {piece_, piece_.get() + front_ - front, piece_.get() + back_};
}

}  // namespace kintsugi::shardmap
