#include "planner/catalog.h"

#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "parser/literals.h"
#include "parser/parser.h"
#include "parser/scanner.h"

namespace kintsugi::planner {
namespace {

// "schema.name" without an allocation: lookups are made with it.
class Key {
 public:
  Key(std::string_view schema, std::string_view name) {
    thread_local std::string buffer;
    buffer.assign(schema).append(1, '.').append(name);
    view_ = buffer;
  }
  operator std::string_view() const { return view_; }  // NOLINT(google-explicit-constructor)

 private:
  std::string_view view_;
};

template <class Map>
auto* look(const Map& map, std::string_view key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

// pg_catalog comes first unless the path says where it is; `found` is asked for each schema in turn.
template <class Ask>
auto along(std::span<const std::string> path, Ask ask) -> decltype(ask(std::string_view{})) {
  if (std::find(path.begin(), path.end(), "pg_catalog") == path.end())
    if (auto* found = ask("pg_catalog")) return found;
  for (const std::string& schema : path)
    if (auto* found = ask(schema)) return found;
  return nullptr;
}

// One fact after the other, each ended so that no two sequences read the same.
class Fingerprint {
 public:
  void add(std::string_view text) {
    add(text.size());
    facts_ += text;
  }
  void add(std::uint64_t number) { facts_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  [[nodiscard]] std::uint64_t value() const { return XXH3_64bits(facts_.data(), facts_.size()); }

 private:
  std::string facts_;
};

void add(Fingerprint& print, const Relation& relation) {
  print.add(relation.schema);
  print.add(relation.name);
  print.add(static_cast<std::uint64_t>(relation.kind));
  for (const Column& column : relation.columns) {
    print.add(column.name);
    print.add(column.type_name);
    print.add(column.collation);
    print.add(column.default_expression);
    print.add(static_cast<std::uint64_t>(column.not_null) * 2 + static_cast<std::uint64_t>(column.generated));
    print.add(static_cast<std::uint64_t>(column.identity));
  }
  for (const std::string& column : relation.primary_key) print.add(column);
  for (const auto& unique : relation.unique_keys) {
    print.add(unique.size());
    for (const std::string& column : unique) print.add(column);
  }
  print.add(relation.definition);
  for (const std::string& parent : relation.parents) print.add(parent);
  print.add(relation.owned_by);
  print.add(static_cast<std::uint64_t>(relation.row_security));
  for (const std::string& trigger : relation.triggers) print.add(trigger);
}

}  // namespace

const Column* Relation::column(std::string_view wanted) const {
  for (const Column& each : columns)
    if (each.name == wanted) return &each;
  return nullptr;
}

CatalogPtr Catalog::empty() {
  return CatalogBuilder().finish();
}

const Relation* Catalog::relation(std::string_view schema, std::string_view name) const {
  return look(relations_, Key(schema, name));
}
const Relation* Catalog::relation_displayed(std::string_view display) const {
  return look(relations_, display);
}
const Relation* Catalog::find_relation(std::span<const std::string> path, std::string_view name) const {
  return along(path, [&](std::string_view schema) { return relation(schema, name); });
}

const Function* Catalog::function(std::string_view schema, std::string_view name) const {
  return look(functions_, Key(schema, name));
}
std::vector<const Function*> Catalog::functions_named(std::string_view name) const {
  std::vector<const Function*> found;
  for (const auto& [key, function] : functions_)
    if (function.name == name) found.push_back(&function);
  return found;
}

const Function* Catalog::find_function(std::span<const std::string> path, std::string_view name) const {
  return along(path, [&](std::string_view schema) { return function(schema, name); });
}

const Type* Catalog::type(std::uint32_t oid) const {
  const auto found = types_by_oid_.find(oid);
  return found == types_by_oid_.end() ? nullptr : found->second;
}
const Type* Catalog::type(std::string_view schema, std::string_view name) const {
  return look(types_, Key(schema, name));
}
const Type* Catalog::find_type(std::span<const std::string> path, std::string_view name) const {
  return along(path, [&](std::string_view schema) { return type(schema, name); });
}

bool Catalog::has_schema(std::string_view name) const {
  return std::find(schemas_.begin(), schemas_.end(), name) != schemas_.end();
}

std::vector<const Relation*> Catalog::relations() const {
  std::vector<const Relation*> all;
  all.reserve(relations_.size());
  for (const auto& [key, relation] : relations_) all.push_back(&relation);
  std::sort(all.begin(), all.end(), [](const Relation* a, const Relation* b) {
    return std::tie(a->schema, a->name) < std::tie(b->schema, b->name);
  });
  return all;
}

CatalogBuilder::CatalogBuilder() : catalog_(new Catalog()) {}
CatalogBuilder::~CatalogBuilder() = default;

void CatalogBuilder::add_schema(std::string name) {
  catalog_->schemas_.push_back(std::move(name));
}

void CatalogBuilder::add_relation(Relation relation) {
  std::string key = relation.display();
  catalog_->relations_.insert_or_assign(std::move(key), std::move(relation));
}

void CatalogBuilder::add_function(Function function) {
  std::string key = function.schema + "." + function.name;
  const auto [at, added] = catalog_->functions_.try_emplace(std::move(key), function);
  if (added) return;
  Function& known = at->second;
  for (const char kind : function.kinds)
    if (known.kinds.find(kind) == std::string::npos) known.kinds += kind;
  known.volatility = std::max(known.volatility, function.volatility);  // 'i' < 's' < 'v'
  known.returns_set |= function.returns_set;
  known.reads_tables |= function.reads_tables;
  known.body += " " + function.body;
  if (known.returns != function.returns) known.returns = 0;
}

void CatalogBuilder::add_type(Type type) {
  std::string key = type.schema + "." + type.name;
  catalog_->types_.insert_or_assign(std::move(key), std::move(type));
}

namespace {

// `use(word, end)` with each word of a body, in small letters, and where it ends.
template <class Use>
void each_word(std::string_view body, const Use& use) {
  std::string word;
  for (std::size_t i = 0; i <= body.size(); ++i) {
    const char c = i < body.size() ? body[i] : ' ';
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '_' || c == '$' || byte >= 128)
      word += static_cast<char>(std::tolower(byte));
    else if (!word.empty())
      use(std::exchange(word, {}), i);
  }
}

}  // namespace

std::vector<std::string> words_of(std::string_view text) {
  std::set<std::string> words;
  each_word(text, [&words](std::string word, std::size_t) { words.insert(std::move(word)); });
  return {words.begin(), words.end()};
}

std::set<std::string> written_in(std::string_view body) {
  std::set<std::string> written;
  std::string before;
  bool named = false;  // the next word is
  each_word(body, [&](std::string word, std::size_t end) {
    const bool filler = word == "only" || word == "table" || body.substr(end).starts_with('.');
    if (named && !filler) written.insert(word);
    named = (named && filler) || word == "update" || word == "truncate" ||
            (word == "into" && (before == "insert" || before == "merge")) ||
            (word == "from" && before == "delete");
    before = std::move(word);
  });
  return written;
}

std::set<std::string> made_in(std::string_view body) {
  static constexpr std::string_view kWords[] = {"current_timestamp", "current_date", "current_time",
                                                "localtime", "localtimestamp"};
  static constexpr std::string_view kCalls[] = {"now",
                                                "random",
                                                "gen_random_uuid",
                                                "clock_timestamp",
                                                "statement_timestamp",
                                                "transaction_timestamp",
                                                "timeofday",
                                                "nextval",
                                                "uuid_generate_v1",
                                                "uuid_generate_v4",
                                                "gen_random_bytes",
                                                "txid_current",
                                                "pg_current_xact_id",
                                                "pg_backend_pid"};
  std::set<std::string> made;
  each_word(body, [&](const std::string& word, std::size_t end) {
    const std::size_t next = body.find_first_not_of(" \t\r\n", end);
    const bool called = next != std::string_view::npos && body[next] == '(';
    const bool text = word == "now" && body.substr(end).starts_with('\'');  // 'now'::timestamptz
    if (std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords) || text ||
        (called && std::find(std::begin(kCalls), std::end(kCalls), word) != std::end(kCalls)))
      made.insert(word);
  });
  return made;
}

namespace {

// Columns of NEW that a trigger's function in plpgsql gives other values: "new.tenant"; "new." when it may be
// any.
std::set<std::string> assigned_in(std::string_view body) {
  using parser::is_keyword;
  using parser::is_symbol;
  static constexpr std::string_view kBefore[] = {"begin", "then", "else", "loop"};
  std::set<std::string> assigned;
  parser::Scanner scanner(body);
  bool begins = true, into = false;  // a statement; what INTO names
  for (parser::Token token = scanner.next();
       token.kind != parser::TokenKind::kEnd && token.kind != parser::TokenKind::kError;) {
    const bool is_new = (begins || into) && is_keyword(body, token, "new");
    const bool is_given = into;
    into = is_keyword(body, token, "into") || (into && is_keyword(body, token, "strict"));
    begins = is_symbol(body, token, ";") ||
             std::any_of(std::begin(kBefore), std::end(kBefore),
                         [&](std::string_view word) { return is_keyword(body, token, word); });
    token = scanner.next();
    if (!is_new) continue;
    std::string name = "new.";
    if (is_symbol(body, token, ".")) {
      token = scanner.next();
      name += parser::decode_identifier(body, token).value_or(std::string());
      token = scanner.next();
    }
    if (is_given || token.of(body) == ":=" || token.of(body) == "=") assigned.insert(std::move(name));
  }
  return assigned;
}

}  // namespace

// A body is read as words, not as a language: a name that stands in a comment counts, one that is put together
// when it runs does not.
void CatalogBuilder::find_mentions() {
  std::map<std::string, std::vector<std::string>> named;  // what a relation's or function's name leads to
  for (const auto& [key, relation] : catalog_->relations_) {
    if (relation.is_system() || relation.kind == RelationKind::kIndex) continue;
    auto& words = named[relation.name];
    if (relation.kind == RelationKind::kView) words = words_of(relation.definition);
  }
  std::set<std::string> relations;
  for (const auto& [name, words] : named) relations.insert(name);
  std::vector<Function*> readers;
  std::map<std::string, std::set<std::string>> written, made, assigned;  // by functions of that name
  std::set<std::string> any;                                             // those that put statements together
  for (auto& [key, function] : catalog_->functions_) {
    if (!function.reads_tables || function.schema == "pg_catalog" || function.body.empty()) continue;
    readers.push_back(&function);
    auto words = words_of(function.body);
    auto& all = named[function.name];
    all.insert(all.end(), words.begin(), words.end());
    written[function.name].merge(written_in(function.body));
    made[function.name].merge(made_in(function.body));
    assigned[function.name].merge(assigned_in(function.body));
    if (puts_together(function.body)) any.insert(function.name);
  }
  for (Function* function : readers) {
    std::set<std::string> seen{function->name};
    std::vector<std::string> left = words_of(function->body);
    function->body.clear();
    std::set<std::string> writes = written[function->name];
    std::set<std::string> makes = made[function->name];
    bool anything = any.contains(function->name);
    while (!left.empty()) {
      const std::string word = std::move(left.back());
      left.pop_back();
      const auto at = named.find(word);
      if (at == named.end() || !seen.insert(word).second) continue;
      if (relations.contains(word)) function->mentions.push_back(word);
      anything |= any.contains(word);
      if (const auto by = written.find(word); by != written.end())
        writes.insert(by->second.begin(), by->second.end());
      if (const auto by = made.find(word); by != made.end()) makes.insert(by->second.begin(), by->second.end());
      left.insert(left.end(), at->second.begin(), at->second.end());
    }
    if (anything) function->mentions.emplace_back(kAnyRelation);
    std::sort(function->mentions.begin(), function->mentions.end());
    for (const std::string& name : function->mentions)
      if (writes.contains(name)) function->writes.push_back(name);
    const auto& columns = assigned[function->name];
    function->writes.insert(function->writes.end(), columns.begin(), columns.end());
    std::sort(function->writes.begin(), function->writes.end());
    function->makes.assign(makes.begin(), makes.end());
  }
}

CatalogPtr CatalogBuilder::finish() {
  find_mentions();
  for (const auto& [key, type] : catalog_->types_) catalog_->types_by_oid_.emplace(type.oid, &type);
  std::sort(catalog_->schemas_.begin(), catalog_->schemas_.end());
  std::unique_ptr<parser::Parser> parser;
  for (auto& [key, relation] : catalog_->relations_) {
    for (const std::string& parent : relation.parents)
      if (const auto found = catalog_->relations_.find(parent); found != catalog_->relations_.end())
        found->second.children.push_back(key);
    if (relation.kind != RelationKind::kView || relation.definition.empty() || relation.is_system()) continue;
    if (!parser) parser = std::make_unique<parser::Parser>();
    if (auto parsed = parser->parse(relation.definition)) relation.query = std::move(*parsed);
  }
  Fingerprint print;
  for (const std::string& schema : catalog_->schemas_) print.add(schema);
  for (const Relation* relation : catalog_->relations()) {
    add(print, *relation);
  }
  std::vector<const Function*> functions;
  for (const auto& [key, function] : catalog_->functions_) functions.push_back(&function);
  std::sort(functions.begin(), functions.end(), [](const Function* a, const Function* b) {
    return std::tie(a->schema, a->name) < std::tie(b->schema, b->name);
  });
  for (const Function* function : functions) {
    print.add(function->schema);
    print.add(function->name);
    print.add(static_cast<std::uint64_t>(function->volatility) * 4 +
              static_cast<std::uint64_t>(function->returns_set) * 2 +
              static_cast<std::uint64_t>(function->reads_tables));
    for (const std::string& name : function->mentions) print.add(name);
    for (const std::string& name : function->writes) print.add(name);
    for (const std::string& name : function->makes) print.add(name);
  }
  std::map<std::string_view, std::string_view> domains;  // with their defaults
  for (const auto& [key, type] : catalog_->types_)
    if (type.kind == 'd') domains.emplace(key, type.default_expression);
  for (const auto& [name, expression] : domains) {
    print.add(name);
    print.add(expression);
  }
  for (auto& [key, relation] : catalog_->relations_)
    std::sort(relation.children.begin(), relation.children.end());
  catalog_->fingerprint_ = print.value();
  return std::move(catalog_);
}

}  // namespace kintsugi::planner
