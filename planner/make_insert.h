// INSERT ... VALUES with its values: which shard each row belongs to, and the statement split by them. Private
// to planner/.
#pragma once

#include "planner/analysis_parts.h"

namespace kintsugi::planner {

// The rows of this execution. `row` counts all of them.
class InsertRows {
 public:
  // `units` are the analysed text's.
  InsertRows(const InsertTemplate& insert, const Values& values, const std::vector<parser::Range>& units);
  [[nodiscard]] std::size_t size() const { return size_; }
  // KG003 and the errors of values that are no keys.
  Status key_of(std::size_t row, const shardmap::KeyTypes& types, const std::vector<Constant>& constants,
                std::string& key) const;
  // Which of the analysed rows it is like.
  [[nodiscard]] std::size_t analysed(std::size_t row) const {
    return row < grouped_ ? 0 : row - grouped_ + insert_.group_rows;
  }
  // The text of each row with its parentheses, in the execution's text; empty when it cannot be told.
  [[nodiscard]] std::vector<parser::Range> texts() const;

 private:
  const InsertTemplate& insert_;
  const Values& values_;
  const std::vector<parser::Range>& units_;
  std::size_t grouped_ = 0;
  std::size_t size_ = 0;
};

}  // namespace kintsugi::planner
