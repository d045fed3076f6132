// A text that is the client's own with pieces put in, left out or changed: made once for a statement's normal
// form, rendered for each execution and shard. Private to planner/. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "parser/token.h"
#include "planner/analysis.h"
#include "shardmap/shard_map.h"

namespace kintsugi::planner {

// A sharded table whose hidden rows are to be left out.
struct Owned {
  std::string map;
  std::vector<std::string> columns;  // the key, quoted and qualified
  friend bool operator==(const Owned&, const Owned&) = default;
};

struct Piece {
  enum class Kind : std::uint8_t {
    kText,
    kSpace,      // one, unless something next to it needs none
    kOwn,        // a range of the analysed statement, as this execution has it
    kLimit,      // LIMIT plus OFFSET, as a number
    kOwnedOpen,  // nothing, or "(predicates) AND (" ...
    kOwnedClose,
    kOwnedWhere,  // nothing, or " WHERE predicates"
    kOwnedTable,  // `text`, or (SELECT * FROM `text` WHERE predicates)
    kEither,      // `inner` when one of `owned` has hidden rows there, else the range
  };
  Kind kind = Kind::kText;
  std::string text;
  std::string alias;  // of kOwnedTable, when the statement gives none
  parser::Range range;
  std::vector<Owned> owned;
  std::vector<Piece> inner;
};

using TextTemplate = std::vector<Piece>;

struct RenderContext {
  const std::vector<parser::Range>& units;  // of the analysed text
  const Values& values;
  const shardmap::ShardMap& map;
  shardmap::ShardId shard = 0;
  std::uint64_t limit = 0;
};

// Fails with XX001 when the map's hidden ranges are damaged.
Result<std::string> render(const TextTemplate& text, const RenderContext& context);
// Whether a rendering on this shard differs from the client's own text because of hidden rows.
[[nodiscard]] bool hides(const std::vector<Owned>& owned, const shardmap::ShardMap& map,
                         shardmap::ShardId shard);

// The statement's text as this execution has it.
[[nodiscard]] std::string_view own_text(const Values& values);

// Changes to a range of one text, put in order and made a template.
class TextEdits {
 public:
  // `text` is the statement's; a view's text is not the client's, and becomes pieces of text.
  TextEdits(std::string_view text, bool own) : text_(text), own_(own) {}

  void replace(parser::Range range, TextTemplate pieces) {
    edits_.push_back({range, std::move(pieces), order_++});
  }
  void replace(parser::Range range, std::string text) {
    replace(range, TextTemplate{Piece{.text = std::move(text)}});
  }
  void insert(std::uint32_t at, TextTemplate pieces) { replace({at, at}, std::move(pieces)); }
  void insert(std::uint32_t at, std::string text) { replace({at, at}, std::move(text)); }
  [[nodiscard]] TextTemplate make(parser::Range whole) const;

 private:
  struct Edit {
    parser::Range range;
    TextTemplate pieces;
    int order;
  };
  std::string_view text_;
  bool own_;
  int order_ = 0;
  std::vector<Edit> edits_;
};

}  // namespace kintsugi::planner
