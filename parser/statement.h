// One parsed statement: its text and its tree. Immutable and self-contained (the tree's views and ranges are
// into its own copy of the text, offsets from 0), so it may be shared between threads and kept as long as
// anyone likes.
#pragma once

#include <memory>
#include <memory_resource>
#include <string>
#include <type_traits>
#include <variant>

#include "parser/ast_definition.h"
#include "parser/ast_own.h"
#include "parser/ast_query.h"
#include "parser/ast_utility.h"

namespace kintsugi::parser {

using StatementBody = std::variant<
    std::monostate, const Query*, const Insert*, const Update*, const Delete*, const Merge*, const Transaction*,
    const DeclareCursor*, const Fetch*, const CloseCursor*, const Prepare*, const Execute*, const Deallocate*,
    const Set*, const Reset*, const Show*, const Discard*, const LockTable*, const Notify*, const Copy*,
    const Explain*, const Vacuum*, const Call*, const Utility*, const CreateTable*, const CreateTableAs*,
    const AlterTable*, const CreateIndex*, const CreateView*, const CreateSequence*, const CreateSchema*,
    const CreateType*, const CreateFunction*, const DropObjects*, const Truncate*, const Grant*, const Comment*,
    const CreateShard*, const AlterShard*, const CreateShardMap*, const CreateShardlet*, const AlterShardlet*,
    const DropOwn*, const SplitShardlet*, const MergeShardlets*, const MoveShardlet*, const Rebalance*,
    const DrainShard*, const ControlJob*, const ShowOwn*>;

class Statement {
 public:
  explicit Statement(std::string_view text) : text_(text), arena_(1024) {}
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] const StatementBody& body() const { return body_; }

  // The body when it is of this type, else nullptr: statement.get<Query>().
  template <class Node>
  [[nodiscard]] const Node* get() const {
    const auto* found = std::get_if<const Node*>(&body_);
    return found == nullptr ? nullptr : *found;
  }

  // How many parameters it has: the highest $n.
  [[nodiscard]] int parameters() const { return parameters_; }
  // Bytes it holds, for caches that are bounded.
  [[nodiscard]] std::size_t bytes() const { return sizeof(*this) + text_.capacity() + arena_bytes_; }

 private:
  friend class TreeBuilder;
  std::string text_;
  std::pmr::monotonic_buffer_resource arena_;
  std::size_t arena_bytes_ = 0;
  StatementBody body_;
  int parameters_ = 0;
};

}  // namespace kintsugi::parser
