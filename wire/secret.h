// A string that is wiped when it is destroyed, overwritten or moved from. For passwords and keys that are ours.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace kintsugi::wire {

class Secret {
 public:
  Secret() = default;
  // Takes the text over: when it was a temporary, no copy of it stays behind.
  explicit Secret(std::string text) : text_(text) { wipe(text); }
  Secret(const Secret&) = default;
  Secret(Secret&& other) : text_(other.text_) { wipe(other.text_); }
  Secret& operator=(Secret other) {
    text_.swap(other.text_);  // the old text is wiped with `other`
    return *this;
  }
  ~Secret() { wipe(text_); }

  [[nodiscard]] const std::string& reveal() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }

 private:
  static void wipe(std::string& text);
  std::string text_;
};

}  // namespace kintsugi::wire
