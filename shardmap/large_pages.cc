#include "shardmap/large_pages.h"

#include <sys/mman.h>

#include <new>

namespace kintsugi::shardmap {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kPiece = std::size_t{2} << 20;
constexpr std::size_t kBlockMax = kPiece / 16;  // what the end of a piece may lose

std::shared_ptr<std::byte> aligned(std::size_t bytes, std::size_t alignment) {
  const std::align_val_t align{alignment};
  return {static_cast<std::byte*>(::operator new(bytes, align)),
          [align](std::byte* done) { ::operator delete(done, align); }};
}

}  // namespace

std::shared_ptr<void> take_alone(std::size_t bytes) {
  return aligned(bytes, kLine);
}

std::shared_ptr<void> LargePages::take(std::size_t bytes) {
  if (bytes > kBlockMax) return take_alone(bytes);
  const std::size_t whole_lines = (bytes + kLine - 1) / kLine * kLine;
  if (piece_ == nullptr || taken_ + whole_lines > kPiece) {
    piece_ = aligned(kPiece, kPiece);
    madvise(piece_.get(), kPiece, MADV_HUGEPAGE);  // a wish: without it all is as right, and slower
    taken_ = 0;
  }
  std::shared_ptr<void> block(piece_, piece_.get() + taken_);
  taken_ += whole_lines;
  return block;
}

}  // namespace kintsugi::shardmap
