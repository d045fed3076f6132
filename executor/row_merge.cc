#include "executor/row_merge.h"

#include <algorithm>

namespace kintsugi::executor {
namespace {

using planner::Merge;

constexpr std::uint32_t kFirstUserOid = 16384;

tl::unexpected<Error> damaged_row(const Branch& branch) {
  return fail("XX001", "shard " + branch.shard() + " sent a row that is not well formed");
}

}  // namespace

Status agree_on_columns(const Branch& first, const Branch& other) {
  if (first.description() == other.description()) return {};
  const auto differ = [&](const std::string& how) {
    return fail("55000",
                "the schemas of the shards " + first.shard() + " and " + other.shard() + " differ: " + how,
                "Bring the table on all shards to the same definition.");
  };
  if (first.description().empty() || other.description().empty())
    return differ("the statement has rows on only one of them");
  KG_TRY(const auto ours, wire::read_row_description(first.description()));
  KG_TRY(const auto theirs, wire::read_row_description(other.description()));
  if (ours.size() != theirs.size()) {
    return differ(std::to_string(ours.size()) + " columns, and " + std::to_string(theirs.size()));
  }
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const wire::Column& a = ours[i];
    const wire::Column& b = theirs[i];
    const std::string name = "column \"" + std::string(a.name) + "\"";
    if (a.name != b.name) return differ(name + " is called \"" + std::string(b.name) + "\"");
    const bool users = a.type_oid >= kFirstUserOid && b.type_oid >= kFirstUserOid;
    if ((a.type_oid != b.type_oid && !users) || a.type_size != b.type_size ||
        a.type_modifier != b.type_modifier) {
      return differ(name + " is of another type");
    }
  }
  return {};
}

RowMerge::RowMerge(const Merge& merge, std::vector<std::int16_t> formats)
    : merge_(merge), formats_(std::move(formats)) {
  for (const planner::SortKey& key : merge_.keys) {
    orders_.push_back({.type = key.type,
                       .binary = binary(static_cast<std::size_t>(key.column)),
                       .descending = key.descending,
                       .nulls_first = key.nulls_first});
  }
}

Status RowMerge::begin(std::size_t columns) {
  columns_ = columns;
  const auto wrong = [](const char* what) {
    return fail(sqlstate::kInternal, std::string("a plan's merge ") + what);
  };
  if (static_cast<std::size_t>(merge_.hidden_columns) > columns)
    return wrong("hides more columns than there are");
  for (const planner::SortKey& key : merge_.keys) {
    if (key.column < 0 || static_cast<std::size_t>(key.column) >= columns)
      return wrong("orders by a column that is not there");
  }
  if (merge_.kind == Merge::Kind::kFold && merge_.columns.size() != columns)
    return wrong("folds another number of columns");
  return {};
}

Result<RowMerge::State> RowMerge::step(Branches& branches, Outbox& client, bool in_place,
                                       std::uint64_t most_rows, std::size_t most_bytes) {
  step_began_at_ = rows_out_;
  switch (merge_.kind) {
    case Merge::Kind::kConcat: return concat(branches, client, in_place, most_rows, most_bytes);
    case Merge::Kind::kOrdered: return ordered(branches, client, most_rows, most_bytes);
    case Merge::Kind::kFold: return fold(branches, client);
    case Merge::Kind::kPlaced: return placed(branches, client, most_rows, most_bytes);
    case Merge::Kind::kOne:
      for (std::size_t i = 1; i < branches.size(); ++i) {
        if (branches[i]->row()) branches[i]->discard();
      }
      return concat(branches, client, in_place, most_rows, most_bytes);
  }
  return fail(sqlstate::kInternal, "a plan merges in an unknown way");
}

bool RowMerge::full(const Outbox& client, std::uint64_t most_rows, std::size_t most_bytes) const {
  return rows_out_ - step_began_at_ >= most_rows || client.kept_bytes() >= most_bytes;
}

// Counts one row of the whole; true when it is the client's.
bool RowMerge::counts() {
  if (passed_++ < merge_.offset) return false;
  ++rows_out_;
  return true;
}

Status RowMerge::give(const wire::Frame& row, Outbox& client) {
  if (!counts()) return {};
  std::string& out = client.compose();
  if (merge_.hidden_columns == 0) {
    out += row.bytes();
    return {};
  }
  const auto visible = static_cast<std::uint16_t>(columns_ - static_cast<std::size_t>(merge_.hidden_columns));
  wire::BodyReader in(row.body);
  if (in.u16() != columns_) return fail("XX001", "a shard sent a row with another number of columns");
  for (std::size_t i = 0; i < visible; ++i) {
    const std::int32_t size = in.i32();
    if (size > 0) (void)in.bytes(static_cast<std::size_t>(size));
  }
  if (!in.ok()) return fail("XX001", "a shard sent a row that is not well formed");
  const std::string_view values = row.body.substr(2, row.body.size() - 2 - in.left());
  wire::FrameWriter(out, wire::server::kDataRow).u16(visible).bytes(values);
  return {};
}

// The branches in turn, so that no shard waits long; a run of rows goes as one piece.
Result<RowMerge::State> RowMerge::concat(Branches& branches, Outbox& client, bool in_place,
                                         std::uint64_t most_rows, std::size_t most_bytes) {
  const std::size_t sources = merge_.kind == Merge::Kind::kOne ? 1 : branches.size();
  bool all_ended = true;
  for (std::size_t turn = 0; turn < sources; ++turn) {
    Branch& branch = *branches[next_++ % sources];
    for (;;) {
      if (limit_reached()) return State::kEnd;
      if (full(client, most_rows, most_bytes)) return State::kFull;
      if (merge_.hidden_columns > 0 || passed_ < merge_.offset) {
        const auto row = branch.row();
        if (!row) break;
        KG_CHECK(give(*row, client));
        branch.drop_row();
        continue;
      }
      std::uint64_t rows = most_rows - (rows_out_ - step_began_at_);
      if (merge_.limit) rows = std::min(rows, merge_.offset + *merge_.limit - passed_);
      const std::string_view run = branch.run_of_rows(rows);
      if (rows == 0) break;
      if (in_place) {
        client.pass(run);
      } else {
        client.compose() += run;
      }
      passed_ += rows;
      rows_out_ += rows;
      branch.drop(run.size());
    }
    all_ended = all_ended && branch.ended();
  }
  return all_ended ? State::kEnd : State::kHungry;
}

Status RowMerge::make_key(std::string_view body, std::string& key) const {
  wire::BodyReader in(body);
  std::string_view values[64];
  std::vector<std::string_view> many;
  const std::size_t count = in.u16();
  if (count != columns_) return fail("XX001", "a shard sent a row with another number of columns");
  std::string_view* value = values;
  if (count > 64) {
    many.resize(count);
    value = many.data();
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t size = in.i32();
    value[i] = size < 0 ? std::string_view() : in.bytes(static_cast<std::size_t>(size));
    if (size >= 0 && value[i].data() == nullptr) break;
  }
  if (!in.done()) return fail("XX001", "a shard sent a row that is not well formed");
  key.clear();
  for (std::size_t i = 0; i < orders_.size(); ++i) {
    const std::string_view cell = value[static_cast<std::size_t>(merge_.keys[i].column)];
    KG_CHECK(append_row_key(orders_[i], cell.data() == nullptr ? std::nullopt : std::optional(cell), key));
  }
  return {};
}

// False: it has no row yet. An ended one has an absent head.
Result<bool> RowMerge::look_at(Branch& branch, Head& head) {
  const auto row = branch.row();
  if (!row) {
    head.present = false;
    return branch.ended();
  }
  KG_CHECK(make_key(row->body, head.key));
  if (head.has_last && head.key < head.last_key) {
    return fail(
        "XX001", "shard " + branch.shard() + " sent rows that are not in the order asked for",
        "An index of a text column may be damaged since the collation's library was upgraded: REINDEX it.");
  }
  head.present = true;
  return true;
}

bool RowMerge::before(std::size_t a, std::size_t b) const {
  const int order = heads_[a].key.compare(heads_[b].key);
  return order != 0 ? order < 0 : a < b;
}

Result<RowMerge::State> RowMerge::ordered(Branches& branches, Outbox& client, std::uint64_t most_rows,
                                          std::size_t most_bytes) {
  // std::*_heap keep the greatest on top.
  const auto later = [this](std::size_t a, std::size_t b) { return before(b, a); };
  heads_.resize(branches.size());
  has_cells_.resize(branches.size());  // here: its head is in the heap, or it has ended
  bool hungry = false;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    if (has_cells_[i]) continue;
    KG_TRY(const bool known, look_at(*branches[i], heads_[i]));
    if (!known) {
      hungry = true;
      continue;
    }
    has_cells_[i] = true;
    if (!heads_[i].present) continue;
    heap_.push_back(i);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  while (!hungry) {
    if (limit_reached() || heap_.empty()) return State::kEnd;
    if (full(client, most_rows, most_bytes)) return State::kFull;
    const std::size_t at = heap_.front();
    Branch& branch = *branches[at];
    Head& head = heads_[at];
    if (!merge_.distinct || !any_given_ || head.key != last_given_) {
      KG_CHECK(give(*branch.row(), client));
      if (merge_.distinct) last_given_ = head.key;
      any_given_ = true;
    }
    branch.drop_row();
    head.last_key.swap(head.key);
    head.has_last = true;
    KG_TRY(const bool known, look_at(branch, head));
    if (known && head.present) {
      // It stays on top more often than not.
      const std::size_t size = heap_.size();
      const bool first = (size < 2 || !before(heap_[1], at)) && (size < 3 || !before(heap_[2], at));
      if (first) continue;
    }
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
    if (known && head.present) {
      heap_.push_back(at);
      std::push_heap(heap_.begin(), heap_.end(), later);
    } else if (!known) {
      has_cells_[at] = false;
      hungry = true;
    }
  }
  return State::kHungry;
}

// A shard that leaves rows out (ON CONFLICT DO NOTHING) is passed over; what is not placed comes at the end.
Result<RowMerge::State> RowMerge::placed(Branches& branches, Outbox& client, std::uint64_t most_rows,
                                         std::size_t most_bytes) {
  for (;;) {
    if (limit_reached()) return State::kEnd;
    if (full(client, most_rows, most_bytes)) return State::kFull;
    if (next_ >= merge_.placement.size()) break;
    const std::size_t from = merge_.placement[next_];
    if (from >= branches.size()) return fail(sqlstate::kInternal, "a plan places a row that no task has");
    Branch& branch = *branches[from];
    if (const auto row = branch.row()) {
      KG_CHECK(give(*row, client));
      branch.drop_row();
    } else if (!branch.ended()) {
      return State::kHungry;
    }
    ++next_;
  }
  for (auto& branch : branches) {
    while (const auto row = branch->row()) {
      if (full(client, most_rows, most_bytes)) return State::kFull;
      KG_CHECK(give(*row, client));
      branch->drop_row();
    }
    if (!branch->ended()) return State::kHungry;
  }
  return State::kEnd;
}

Result<RowMerge::State> RowMerge::fold(Branches& branches, Outbox& client) {
  cells_.resize(columns_);
  has_cells_.resize(branches.size());
  for (auto& column : cells_) column.resize(branches.size());
  bool hungry = false;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    if (const auto row = branches[i]->row()) {
      const auto values = wire::read_data_row(row->body);
      if (!values || values->size() != columns_) return damaged_row(*branches[i]);
      if (has_cells_[i])
        return fail("XX001", "shard " + branches[i]->shard() + " sent more than one partial result");
      has_cells_[i] = true;
      for (std::size_t c = 0; c < columns_; ++c) {
        const auto& value = (*values)[c];
        cells_[c][i] = value ? Cell(std::string(*value)) : Cell();
      }
      branches[i]->drop_row();
    }
    hungry = hungry || !branches[i]->ended();
  }
  if (hungry) return State::kHungry;
  if (folded_) return State::kEnd;
  folded_ = true;
  const auto missing = std::find(has_cells_.begin(), has_cells_.end(), false);
  if (missing != has_cells_.end()) {
    Branch& branch = *branches[static_cast<std::size_t>(missing - has_cells_.begin())];
    if (branch.failed()) return State::kHungry;
    return fail("XX001", "shard " + branch.shard() + " sent no partial result");
  }
  std::vector<Cell> folded;
  for (std::size_t c = 0; c < columns_; ++c) {
    KG_TRY(Cell cell, fold_column(merge_.columns[c], binary(c), cells_[c]));
    folded.push_back(std::move(cell));
  }
  std::vector<std::optional<std::string_view>> views(folded.begin(), folded.end());
  views.resize(columns_ - static_cast<std::size_t>(merge_.hidden_columns));
  if (limit_reached() || !counts()) return State::kEnd;
  wire::append_data_row(client.compose(), views);
  return State::kEnd;
}

}  // namespace kintsugi::executor
