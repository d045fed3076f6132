// An exact sum of PostgreSQL numerics: what numeric_add would give, with the largest scale of what was added.
// Private to executor/.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace kintsugi::executor {

class DecimalSum {
 public:
  // XX001 when it is no numeric as PostgreSQL writes one.
  Status add(std::string_view value, bool binary);
  [[nodiscard]] std::string to_value(bool binary) const;

 private:
  struct Normal;
  Status add_text(std::string_view text);
  Status add_binary(std::string_view bytes);
  [[nodiscard]] Normal normal() const;

  // Base-10000 digits with their sign, by weight; not carried over until the end.
  std::map<int, std::int64_t, std::greater<>> digits_;
  int scale_ = 0;  // decimals behind the point
  bool nan_ = false, plus_infinity_ = false, minus_infinity_ = false;
};

}  // namespace kintsugi::executor
