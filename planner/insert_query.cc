// INSERT ... SELECT: its rows stay where they are, have one key, or are poured.
#include <algorithm>

#include "parser/scanner.h"
#include "planner/insert_analysis.h"

namespace kintsugi::planner {

using parser::as;
using Kind = RelationUse::Kind;

std::optional<PourTemplate> InsertAnalysis::pour_of_source() const {
  const parser::Query* source = insert_.source;
  if (source == nullptr || values_ != nullptr || !shape_ || (!shape_->known && analyzer_.modifies))
    return std::nullopt;
  const parser::Range whole = analyzer_.whole;
  const parser::Range behind{source->range.end, whole.end};
  if (has_parameters(behind)) return std::nullopt;
  // WITH goes with the query, where nothing else can speak of it.
  const parser::WithClause* with = insert_.with;
  if (with != nullptr && (analyzer_.modifies || !stands_alone(analyzer_.statement().text(), behind)))
    return std::nullopt;
  const auto own = [](std::uint32_t begin, std::uint32_t end) {
    return TextTemplate{Piece{.kind = Piece::Kind::kOwn, .range = {begin, end}}};
  };
  PourTemplate made;
  made.at_once = insert_.on_conflict != nullptr && insert_.on_conflict->do_update;
  made.source = own(source->range.begin, source->range.end);
  made.head = own(with == nullptr ? whole.begin : with->range.end, source->range.begin);
  if (with != nullptr) {
    made.source.insert(made.source.begin(),
                       {{.kind = Piece::Kind::kOwn, .range = with->range}, {.text = " ("}});
    made.source.push_back({.text = ")"});
  }
  if (source->range.end < whole.end) made.tail = own(source->range.end, whole.end);
  const parser::Select* select = source->simple();
  if (select != nullptr)
    for (const parser::Target& target : select->targets) {
      const auto* literal = as<parser::Literal>(target.expr);
      made.untyped.push_back(literal != nullptr && (literal->literal == parser::LiteralKind::kString ||
                                                    literal->literal == parser::LiteralKind::kNull));
    }
  return made;
}

bool InsertAnalysis::has_parameters(parser::Range range) const {
  parser::Scanner scanner(analyzer_.statement().text().substr(0, range.end));
  scanner.seek(range.begin);
  for (;;) {
    const parser::Token token = scanner.next();
    if (token.kind == parser::TokenKind::kParameter) return true;
    if (token.kind == parser::TokenKind::kEnd || token.kind == parser::TokenKind::kError) return false;
  }
}

bool InsertAnalysis::pour_always() {
  analysis_.pour = pour_of_source();
  if (!analysis_.pour) return false;
  analysis_.tables.clear();
  analysis_.point.reset();
  analysis_.depends_on_parameters |= analyzer_.statement().parameters() > 0;
  return true;
}

std::string InsertAnalysis::own_of_query(const RelationUse& target) const {
  const Own own{analyzer_.session_time, analyzer_.one_place, analyzer_.reads_tables};
  if (const std::string what = own.what(false); !what.empty()) return what;
  if (target.relation == nullptr) return {};
  for (const Column& column : target.relation->columns) {
    const auto position = position_of(*target.relation, column.name);
    const bool given = position && !(shape_ && shape_->known && *position >= shape_->columns.size());
    if (column.generated || given) continue;
    if (const std::string what = own_default(column); !what.empty()) return what;
  }
  return {};
}

void InsertAnalysis::of_query(const RelationUse& target) {
  const Shape& shape = *shape_;
  std::vector<std::optional<std::size_t>> positions;
  for (const std::string& name : target.table->key)
    positions.push_back(target.relation != nullptr ? position_of(*target.relation, name)
                                                   : position_of(Relation{}, name));
  const parser::Select* select = insert_.source->simple();
  // The same value for all rows.
  std::vector<KeyCondition> equal;
  KeyTerms terms;
  // How many columns a function in FROM has is known when its rows are there.
  if (!shape.known) {
    if (pour_always()) return;
    return refuse_always(refused("INSERT INTO " + target.display + " of rows that a writing WITH gives",
                                 "Run the write in WITH as a statement of its own, in one transaction."));
  }
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (!positions[i] || *positions[i] >= shape.columns.size()) {
      const Column* column =
          target.relation == nullptr ? nullptr : target.relation->column(target.table->key[i]);
      if (column != nullptr && !default_of(*target.relation, *column).empty() && pour_always()) return;
      return refuse_always({.sqlstate = std::string(sqlstate::kKeyMissing),
                            .message = "INSERT ... SELECT into " + target.display +
                                       " without its sharding key " + target.table->key[i],
                            .hint = "Name the column in the INSERT and select a value for it."});
    }
    terms.push_back(shape.columns[*positions[i]].term);
    const bool plain =
        select != nullptr && *positions[i] < select->targets.size() &&
        std::none_of(select->targets.begin(), select->targets.end(),
                     [](const parser::Target& each) { return each.expr == nullptr || each.star; });
    if (!plain) continue;
    if (limit_of_key(target, i).any()) continue;
    if (auto source = analyzer_.source_of(select->targets[*positions[i]].expr)) {
      KeyCondition leaf;
      leaf.op = KeyCondition::Op::kEqual;
      leaf.column = static_cast<std::uint8_t>(i);
      leaf.source = *source;
      equal.push_back(std::move(leaf));
    }
  }
  const std::string pin =
      "Select the sharding key of the rows that are read as the key of the new ones, or give it as one "
      "literal or parameter.";
  const Error elsewhere = refused("INSERT ... SELECT into " + target.display +
                                      " of rows that other shards have, or whose sharding key is worked out",
                                  pin);
  if (auto pour = pour_of_source())
    analysis_.several = std::move(*pour);
  else
    analysis_.several = elsewhere;
  if (equal.size() == positions.size()) {
    TouchedTable table{target.display, target.table->map, KeyCondition::both(std::move(equal))};
    table.stored = true;
    analysis_.tables.push_back(std::move(table));
    if (std::find(analysis_.maps.begin(), analysis_.maps.end(), target.table->map) == analysis_.maps.end())
      analysis_.maps.push_back(target.table->map);
    analysis_.point.reset();
    analysis_.depends_on_parameters |= analyzer_.statement().parameters() > 0;
    return;
  }
  // The key of rows that are read: they stay where they are.
  const bool kept = std::any_of(analyzer_.uses.begin(), analyzer_.uses.end(), [&](const RelationUse& use) {
    if (use.kind != Kind::kSharded || use.mapping != target.mapping || use.nullable) return false;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      if (!analyzer_.equal(terms[i], use.first_term + static_cast<TermId>(i))) return false;
      // As it is there, it is stored here.
      const KeyLimit limit = limit_of_key(target, i);
      if (limit.any() && !(limit_of_key(use, i) == limit)) return false;
    }
    return true;
  });
  if (!kept) {
    if (pour_always()) return;
    return refuse_always(elsewhere);
  }
  if (auto error = hopeless(analyzer_)) {
    if (!std::holds_alternative<PourTemplate>(analysis_.several)) analysis_.several = std::move(*error);
    return;
  }
  TextEdits edits(analyzer_.statement().text(), true);
  add_ownership(analyzer_, analysis_, edits);
  if (shape.distribution.kind == Distribution::Kind::kSharded && shape.distribution.mapping == target.mapping &&
      analyzer_.one_place.empty()) {
    FanOutTemplate fan_out;
    fan_out.writes = true;
    analysis_.several = std::move(fan_out);
  }
}

}  // namespace kintsugi::planner
