#include "planner/text_template.h"

#include <algorithm>

#include "shardmap/key_predicate.h"

namespace kintsugi::planner {
namespace {

using parser::Range;

std::vector<Range> shifted(const std::vector<Range>& units, std::uint32_t by) {
  std::vector<Range> out = units;
  for (Range& unit : out) unit = {unit.begin - by, unit.end - by};
  return out;
}

// A range of the analysed text in this execution's, white space and comments between its ends included. Its
// ends lie at units' borders or between units.
Range place(Range range, const std::vector<Range>& from, const std::vector<Range>& to) {
  if (from.size() != to.size()) return range;
  // The first unit that does not end before the range begins, and the last that begins before it ends.
  const auto first = std::upper_bound(from.begin(), from.end(), range.begin,
                                      [](std::uint32_t at, const Range& unit) { return at < unit.end; });
  const auto behind = std::lower_bound(from.begin(), from.end(), range.end,
                                       [](const Range& unit, std::uint32_t at) { return unit.begin < at; });
  if (first == from.end() || behind == from.begin() || behind <= first) {
    // Nothing but space: the end of the unit before it.
    const std::uint32_t at =
        first == from.begin() ? 0 : to[static_cast<std::size_t>(first - from.begin()) - 1].end;
    return {at, at};
  }
  return {to[static_cast<std::size_t>(first - from.begin())].begin,
          to[static_cast<std::size_t>(behind - from.begin()) - 1].end};
}

class Renderer {
 public:
  explicit Renderer(const RenderContext& context)
      : context_(context),
        statement_(own_text(context.values)),
        to_(shifted(context.values.normal->units(), context.values.begin)) {}

  Status put(const TextTemplate& text) {
    for (const Piece& piece : text) KG_CHECK(put(piece));
    return {};
  }
  // What needs no space before it takes ours away.
  void append(std::string_view text) {
    if (text.empty()) return;
    constexpr std::string_view kClose = ",).;[: ";
    if (soft_ && kClose.find(text.front()) != std::string_view::npos) out.pop_back();
    soft_ = false;
    out += text;
  }
  // Without a space of ours at the end.
  std::string finish() {
    if (soft_) out.pop_back();
    return std::move(out);
  }

  std::string out;

 private:
  Status put(const Piece& piece) {
    switch (piece.kind) {
      case Piece::Kind::kText: append(piece.text); return {};
      case Piece::Kind::kSpace:
        if (soft_ || out.empty() || out.back() == ' ' || out.back() == '(') return {};
        soft_ = true;
        out += ' ';
        return {};
      case Piece::Kind::kOwn: {
        append(place(piece.range, context_.units, to_).of(statement_));
        return {};
      }
      case Piece::Kind::kLimit: append(std::to_string(context_.limit)); return {};
      case Piece::Kind::kOwnedOpen: {
        KG_TRY(const std::string predicate, predicates(piece.owned));
        if (predicate.empty()) return {};
        append(predicate + " AND (");
        return {};
      }
      case Piece::Kind::kOwnedClose:
        if (!hides(piece.owned, context_.map, context_.shard)) return {};
        append(")");
        return {};
      case Piece::Kind::kOwnedWhere: {
        KG_TRY(const std::string predicate, predicates(piece.owned));
        if (predicate.empty()) return {};
        if (!soft_) out += ' ';
        append("WHERE " + predicate);
        return {};
      }
      case Piece::Kind::kOwnedTable: {
        KG_TRY(const std::string predicate, predicates(piece.owned));
        if (predicate.empty()) return put(piece.inner);
        append("(SELECT * FROM " + piece.text + " WHERE " + predicate + ")");
        if (!piece.alias.empty()) append(" AS " + piece.alias);
        return {};
      }
      case Piece::Kind::kEither:
        if (hides(piece.owned, context_.map, context_.shard)) return put(piece.inner);
        if (!piece.text.empty())
          append(piece.text);
        else
          append(place(piece.range, context_.units, to_).of(statement_));
        return {};
    }
    return {};
  }

  Result<std::string> predicates(const std::vector<Owned>& owned) const {
    std::string all;
    for (const Owned& table : owned) {
      const shardmap::Mapping* mapping = context_.map.mapping(table.map);
      if (mapping == nullptr || mapping->hidden().empty()) continue;
      const auto ranges = shardmap::hidden_on(*mapping, context_.shard);
      if (ranges.empty()) continue;
      KG_TRY(const std::string predicate, shardmap::outside_ranges(*mapping, table.columns, ranges));
      all += (all.empty() ? "" : " AND ") + predicate;
    }
    return all;
  }

  bool soft_ = false;  // the space at the end is ours
  const RenderContext& context_;
  std::string_view statement_;
  std::vector<Range> to_;
};

}  // namespace

std::string_view own_text(const Values& values) {
  const auto& units = values.normal->units();
  if (units.empty()) return {};
  return values.normal->text().substr(values.begin, units.back().end - values.begin);
}

bool hides(const std::vector<Owned>& owned, const shardmap::ShardMap& map, shardmap::ShardId shard) {
  return std::any_of(owned.begin(), owned.end(), [&](const Owned& table) {
    const shardmap::Mapping* mapping = map.mapping(table.map);
    return mapping != nullptr && std::any_of(mapping->hidden().begin(), mapping->hidden().end(),
                                             [&](const auto& range) { return range.shard == shard; });
  });
}

Result<std::string> render(const TextTemplate& text, const RenderContext& context) {
  Renderer renderer(context);
  KG_CHECK(renderer.put(text));
  return renderer.finish();
}

TextTemplate TextEdits::make(Range whole) const {
  std::vector<Edit> edits;
  for (const Edit& edit : edits_)
    if (edit.range.begin >= whole.begin && edit.range.end <= whole.end) edits.push_back(edit);
  std::stable_sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) {
    return std::tie(a.range.begin, a.range.end, a.order) < std::tie(b.range.begin, b.range.end, b.order);
  });
  TextTemplate out;
  const auto keep = [&](std::uint32_t begin, std::uint32_t end) {
    if (begin >= end) return;
    if (own_)
      out.push_back({.kind = Piece::Kind::kOwn, .range = {begin, end}});
    else
      out.push_back({.text = std::string(text_.substr(begin, end - begin))});
  };
  // White space at the ends of a piece of the client's text is not rendered: a single space stands for it.
  std::uint32_t at = whole.begin;
  for (const Edit& edit : edits) {
    if (edit.range.begin < at) continue;  // inside one that was replaced
    keep(at, edit.range.begin);
    if (own_ && at < edit.range.begin) out.push_back({.kind = Piece::Kind::kSpace});
    out.insert(out.end(), edit.pieces.begin(), edit.pieces.end());
    if (own_) out.push_back({.kind = Piece::Kind::kSpace});
    at = edit.range.end;
  }
  keep(at, whole.end);
  return out;
}

}  // namespace kintsugi::planner
