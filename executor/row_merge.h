// Rows of several branches made one sequence, as a planner::Merge says. Takes rows that are there and never
// waits: says what it lacks. Private to executor/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/branch.h"
#include "executor/fold.h"
#include "executor/row_key.h"
#include "planner/plan.h"

namespace kintsugi::executor {

using Branches = std::vector<std::unique_ptr<Branch>>;

class RowMerge {
 public:
  // `formats`: the result formats as sent to the shards: none, one for all, or one a column.
  RowMerge(const planner::Merge& merge, std::vector<std::int16_t> formats);

  // When all branches are described and agree (see agree_on_columns), before the first step.
  Status begin(std::size_t columns);

  enum class State : std::uint8_t {
    kHungry,  // a branch has neither a row nor come to its end
    kFull,    // `most_bytes` are in the outbox, or `most_rows` have gone out
    kEnd,     // no more rows; the branches may still have some when a limit was reached
  };
  // Rows go to `client`: without a copy when `in_place`, and then they are to be flushed before a branch reads.
  Result<State> step(Branches& branches, Outbox& client, bool in_place, std::uint64_t most_rows,
                     std::size_t most_bytes);

  [[nodiscard]] std::uint64_t rows_out() const { return rows_out_; }
  [[nodiscard]] bool limit_reached() const { return merge_.limit && passed_ >= merge_.offset + *merge_.limit; }

 private:
  struct Head {
    std::string key, last_key;
    bool present = false, has_last = false;
  };

  Result<State> concat(Branches& branches, Outbox& client, bool in_place, std::uint64_t most_rows,
                       std::size_t most_bytes);
  Result<State> ordered(Branches& branches, Outbox& client, std::uint64_t most_rows, std::size_t most_bytes);
  Result<State> placed(Branches& branches, Outbox& client, std::uint64_t most_rows, std::size_t most_bytes);
  Result<State> fold(Branches& branches, Outbox& client);
  Result<bool> look_at(Branch& branch, Head& head);
  [[nodiscard]] bool before(std::size_t a, std::size_t b) const;
  Status make_key(std::string_view body, std::string& key) const;
  Status give(const wire::Frame& row, Outbox& client);
  [[nodiscard]] bool counts();
  [[nodiscard]] bool full(const Outbox& client, std::uint64_t most_rows, std::size_t most_bytes) const;
  [[nodiscard]] bool binary(std::size_t column) const {
    if (formats_.empty()) return false;
    return (formats_.size() == 1 ? formats_[0] : column < formats_.size() ? formats_[column] : 0) != 0;
  }

  const planner::Merge& merge_;
  std::vector<std::int16_t> formats_;
  std::vector<KeyOrder> orders_;
  std::size_t columns_ = 0;
  std::uint64_t passed_ = 0;    // rows of the whole, the offset's among them
  std::uint64_t rows_out_ = 0;  // that the client gets
  std::uint64_t step_began_at_ = 0;
  std::size_t next_ = 0;  // of the branches, whose turn it is; of the placement
  std::vector<Head> heads_;
  std::vector<std::size_t> heap_;  // branches whose head is known, the first row's on top
  std::string last_given_;         // for DISTINCT
  bool any_given_ = false, folded_ = false;
  std::vector<std::vector<Cell>> cells_;  // by column, then branch
  std::vector<bool> has_cells_;           // by branch
};

// 55000 when two shards describe different columns. Types that users made have different OIDs everywhere, so of
// them only the size is compared.
Status agree_on_columns(const Branch& first, const Branch& other);

}  // namespace kintsugi::executor
