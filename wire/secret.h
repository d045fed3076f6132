// A string that is wiped when it is destroyed, overwritten or moved from. For passwords and keys that are ours.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace kintsugi::wire {

class Secret {
 public:
  Secret() = default;
  // Takes the text over and leaves nothing of it where it was.
  explicit Secret(std::string&& text) : text_(std::move(text)) { wipe(text); }
  explicit Secret(std::string_view text) : text_(text) {}
  Secret(const Secret&) = default;
  Secret(Secret&& other) noexcept : text_(std::move(other.text_)) { wipe(other.text_); }
  Secret& operator=(Secret other) noexcept {
    text_.swap(other.text_);  // the old text is wiped with `other`
    return *this;
  }
  ~Secret() { wipe(text_); }

  [[nodiscard]] const std::string& reveal() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }

 private:
  // Also what a short string leaves in its own buffer when it is moved from.
  static void wipe(std::string& text) noexcept;
  std::string text_;
};

}  // namespace kintsugi::wire
