// What a name in FROM means: a table, a view, a WITH.
#include <algorithm>

#include "planner/analyzer.h"

namespace kintsugi::planner {

using Kind = Distribution::Kind;

const NameContext::NewTable* Analyzer::new_table(const parser::QualifiedName& name) const {
  for (const NameContext::NewTable& fresh : names_.new_tables) {
    if (fresh.table.name != name.name()) continue;
    const auto& path = names_.search_path;
    if (name.schema().empty() ? std::find(path.begin(), path.end(), fresh.table.schema) != path.end()
                              : name.schema() == fresh.table.schema)
      return &fresh;
  }
  return nullptr;
}

bool Analyzer::is_gone(const parser::QualifiedName& name, const Relation* relation) const {
  return std::any_of(names_.gone_tables.begin(), names_.gone_tables.end(), [&](const auto& gone) {
    if (gone.second != name.name()) return false;
    if (relation != nullptr) return gone.first == relation->schema;
    const auto& path = names_.search_path;
    return name.schema().empty() ? std::find(path.begin(), path.end(), gone.first) != path.end()
                                 : name.schema() == gone.first;
  });
}

RelationUse Analyzer::resolve(const parser::QualifiedName& name) {
  RelationUse use;
  use.display =
      std::string(name.schema().empty() ? "" : std::string(name.schema()) + ".") + std::string(name.name());
  const std::string_view wanted = name.name();
  if (name.schema().empty()) {
    if (std::find(names_.temporary_tables.begin(), names_.temporary_tables.end(), wanted) !=
        names_.temporary_tables.end()) {
      use.kind = RelationUse::Kind::kHome;
      return use;
    }
    use.relation = catalog_.find_relation(names_.search_path, wanted);
  } else {
    use.relation = catalog_.relation(name.schema(), wanted);
  }
  if (const NameContext::NewTable* fresh = new_table(name)) {
    use.table = &fresh->table;
    use.relation = fresh->relation.get();
    use.display = fresh->table.display();
    if (use.relation != nullptr) use.needed.assign(use.relation->columns.size(), false);
  } else if (is_gone(name, use.relation)) {
    use.relation = nullptr;
  } else if (use.relation != nullptr) {
    use.display = use.relation->display();
    use.needed.assign(use.relation->columns.size(), false);
    if (use.relation->is_system()) {
      use.kind = RelationUse::Kind::kSystem;
      return use;
    }
    // A partition or child is placed as what it belongs to.
    const Relation* at = use.relation;
    for (int guard = 0; at != nullptr && guard < 32; ++guard) {
      use.table = map_.table(at->schema, at->name);
      if (use.table != nullptr || at->parents.empty()) break;
      at = catalog_.relation_displayed(at->parents.front());
    }
  } else if (name.schema().empty()) {
    for (const std::string& schema : names_.search_path)
      if ((use.table = map_.table(schema, wanted)) != nullptr) break;
  } else {
    use.table = map_.table(name.schema(), wanted);
  }
  if (use.relation == nullptr) unknown_names = true;
  if (use.table != nullptr) {
    switch (use.table->kind) {
      case shardmap::TableKind::kSharded:
        use.kind = RelationUse::Kind::kSharded;
        use.mapping = map_.mapping(use.table->map);
        break;
      case shardmap::TableKind::kReplicated: use.kind = RelationUse::Kind::kReplicated; break;
      case shardmap::TableKind::kHome: use.kind = RelationUse::Kind::kHome; break;
    }
    if (use.kind == RelationUse::Kind::kSharded && use.mapping == nullptr)
      use.kind = RelationUse::Kind::kUnknown;
  } else {
    use.kind = use.relation == nullptr ? RelationUse::Kind::kUnknown : RelationUse::Kind::kHome;
  }
  return use;
}

Shape Analyzer::table(const parser::TableRef& ref, Block* outer, std::string_view& schema) {
  if (ref.name.schema().empty()) {
    for (std::size_t i = commons_.size(); i-- > 0;)
      if (commons_[i].unit == unit_ && commons_[i].table->name.text == ref.name.name())
        return common_table(i, outer);
  }
  RelationUse use = resolve(ref.name);
  if (use.relation != nullptr && use.relation->kind == RelationKind::kView &&
      use.kind != RelationUse::Kind::kSystem) {
    schema = use.relation->schema;
    return view(*use.relation, ref, outer);
  }
  use.ref = &ref;
  use.unit = unit_;
  use.block = outer == nullptr ? nullptr : outer->select;
  use.owner = outer;
  if (ref.sample != nullptr) samples = true;
  if (use.relation != nullptr) schema = use.relation->schema;
  const int index = static_cast<int>(uses.size());
  Shape shape;
  shape.relation = use.relation;
  if (use.relation != nullptr) {
    for (std::size_t i = 0; i < use.relation->columns.size(); ++i) {
      const Column& column = use.relation->columns[i];
      shape.columns.push_back(
          {column.name, column.type, column.collation, kNoTerm, index, static_cast<int>(i)});
      shape.part.filled.push_back(column.not_null);
    }
    const auto add_key = [&](const std::vector<std::string>& names) {
      FromPart::Key key;
      for (const std::string& name : names)
        for (std::size_t i = 0; i < use.relation->columns.size(); ++i)
          if (use.relation->columns[i].name == name) key.places.push_back(static_cast<int>(i));
      if (!names.empty() && key.places.size() == names.size()) shape.part.keys.push_back(std::move(key));
    };
    add_key(use.relation->primary_key);
    for (const auto& unique : use.relation->unique_keys) add_key(unique);
  } else {
    shape.known = false;
  }
  shape.part.stored = true;
  switch (use.kind) {
    case RelationUse::Kind::kSharded: {
      shape.distribution.kind = Kind::kSharded;
      shape.distribution.mapping = use.mapping;
      KeyTerms key;
      use.first_term = static_cast<TermId>(terms_.size());
      for (std::size_t i = 0; i < use.table->key.size(); ++i)
        key.push_back(new_term(index, static_cast<int>(i)));
      for (std::size_t i = 0; i < use.table->key.size(); ++i) {
        const auto found =
            std::find_if(shape.columns.begin(), shape.columns.end(),
                         [&](const ScopeColumn& column) { return column.name == use.table->key[i]; });
        if (found != shape.columns.end())
          found->term = key[i];
        else if (!shape.known)
          shape.columns.push_back({use.table->key[i], 0, {}, key[i], -1, -1});
      }
      shape.distribution.keys.push_back(std::move(key));
      break;
    }
    case RelationUse::Kind::kReplicated:
      if (ref.sample != nullptr)
        shape.distribution = Distribution::spread("TABLESAMPLE takes other rows on each shard");
      break;
    case RelationUse::Kind::kHome:
    case RelationUse::Kind::kSystem:
    case RelationUse::Kind::kUnknown: shape.distribution.kind = Kind::kHome; break;
  }
  uses.push_back(std::move(use));
  return shape;
}

Shape Analyzer::view(const Relation& relation, const parser::TableRef& ref, Block* outer) {
  const auto* body = relation.query ? relation.query->get<parser::Query>() : nullptr;
  if (body == nullptr || depth_ > 16) {
    opaque = relation.display();
    Shape shape;
    shape.distribution = Distribution::spread("the view " + relation.display() + " could not be read");
    shape.known = false;
    return shape;
  }
  units.push_back({relation.query.get(), &ref, unit_, relation.display()});
  const int unit_before = unit_;
  unit_ = static_cast<int>(units.size()) - 1;
  ++depth_;
  const std::size_t first = uses.size();
  Shape shape = query(*body, nullptr, outer);
  --depth_;
  unit_ = unit_before;
  for (std::size_t i = first; i < uses.size(); ++i)
    if (uses[i].relation != nullptr && uses[i].relation->row_security) guarded_view = relation.display();
  for (std::size_t i = 0; i < relation.columns.size() && i < shape.columns.size(); ++i) {
    shape.columns[i].name = relation.columns[i].name;
    shape.columns[i].type = relation.columns[i].type;
    shape.columns[i].collation = relation.columns[i].collation;
    // A view's output is not the table's own column to whoever gathers.
    shape.columns[i].use = -1;
  }
  shape.relation = &relation;
  return shape;
}

}  // namespace kintsugi::planner
