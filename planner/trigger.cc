// Triggers and functions: what they do elsewhere than on the shard where they run.
#include <algorithm>
#include <functional>

#include "planner/analyse.h"

namespace kintsugi::planner {

using Kind = RelationUse::Kind;

namespace {

bool puts_anything_together(const Function& function) {
  return std::binary_search(function.mentions.begin(), function.mentions.end(), kAnyRelation);
}

Error runs_anything(const std::string& what, bool sharded) {
  return refused(
      what + " puts the statements together that it EXECUTEs",
      sharded ? "It runs on the shard of its row: say with = which sharding key the statement is for, or "
                "write the names of tables into the function."
              : "Each shard would run them for itself. Write the names of tables into the function.");
}

// `what` is a trigger, a rule or a policy of the table, and `function` what its text says.
std::optional<Error> does_elsewhere(const Analyzer& analyzer, const RelationUse& table,
                                    const Function& function, const std::string& what) {
  const bool sharded = table.kind == Kind::kSharded;
  if (!sharded && puts_anything_together(function)) return runs_anything(what, false);
  if (!sharded && !function.makes.empty())
    return refused(what + " calls " + function.makes.front() + ", which each shard would answer for itself",
                   "Leave it out, and give the value in the statements that write.");
  const auto relations = analyzer.catalog().relations();
  for (const std::string& name : function.mentions) {
    // Views are looked through: what they read is mentioned as well.
    if (std::none_of(relations.begin(), relations.end(), [&](const Relation* each) {
          return each->name == name &&
                 (each->kind == RelationKind::kTable || each->kind == RelationKind::kPartitioned);
        }))
      continue;
    const auto named = [&](const shardmap::Table* each) { return each->name == name; };
    const auto tables = analyzer.map().tables();
    const auto there = std::find_if(tables.begin(), tables.end(), named);
    const bool home = there == tables.end() || (*there)->kind == shardmap::TableKind::kHome;
    const bool replicated = !home && (*there)->kind == shardmap::TableKind::kReplicated;
    const bool writes = std::binary_search(function.writes.begin(), function.writes.end(), name);
    // Rows of the same map lie with the row that the trigger is for, as far as they have its key.
    const bool fine = home         ? false
                      : replicated ? !sharded || !writes
                                   : sharded && table.table != nullptr && (*there)->map == table.table->map;
    if (fine) continue;
    const std::string which = home         ? "which the home shard alone has"
                              : replicated ? "which is replicated"
                                           : "which is sharded otherwise";
    return refused(
        what + (writes ? " writes to " : " names ") + name + ", " + which,
        "It runs on the shard of its row. Send the write as a statement of its own, in the same transaction.");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Error> trigger_elsewhere(const Analyzer& analyzer, const RelationUse& table,
                                       const Function& function) {
  const auto writes = [&](const std::string& what) {
    return std::binary_search(function.writes.begin(), function.writes.end(), what);
  };
  if (table.kind == Kind::kSharded && table.table != nullptr)
    for (const std::string& key : table.table->key)
      if (writes("new." + key) || writes("new."))
        return refused("a trigger of " + table.display + " whose function " + function.name +
                           " gives NEW another sharding key " + key,
                       "The row is on its shard when it runs. Give the key in the statements that write.");
  return does_elsewhere(analyzer, table, function,
                        "a trigger of " + table.display + " whose function " + function.name);
}

std::optional<Error> text_elsewhere(const Analyzer& analyzer, const RelationUse& table, std::string_view text,
                                    bool rule) {
  Function says;
  says.mentions = words_of(text);
  const auto written = written_in(text);
  says.writes.assign(written.begin(), written.end());
  const auto made = made_in(text);
  if (rule) says.makes.assign(made.begin(), made.end());
  // No statement of the table knows them, so that none of them can be refused for it.
  for (const std::string& word : says.mentions)
    for (const Function* function : analyzer.catalog().functions_named(word))
      if (puts_anything_together(*function))
        return runs_anything(std::string(rule ? "a rule of " : "a policy of ") + table.display +
                                 " that calls the function " + function->name + ", which",
                             false);
  return does_elsewhere(analyzer, table, says,
                        (rule ? "a rule of " : "a policy of ") + table.display + " that");
}

namespace {

// The first function of a trigger of the table, or of a partition, of which this holds.
const Function* trigger_that(const Analyzer& analyzer, const Relation* relation,
                             const std::function<bool(const Function&)>& holds) {
  if (relation == nullptr) return nullptr;
  for (const std::string& name : relation->triggers) {
    const std::size_t dot = name.find('.');
    const Function* function = analyzer.catalog().function(name.substr(0, dot), name.substr(dot + 1));
    if (function != nullptr && holds(*function)) return function;
  }
  for (const std::string& child : relation->children)
    if (const Function* function = trigger_that(analyzer, analyzer.catalog().relation_displayed(child), holds))
      return function;
  return nullptr;
}

}  // namespace

std::optional<Error> triggers_run_anything(const Analyzer& analyzer, const RelationUse& table) {
  if (table.kind != Kind::kSharded) return std::nullopt;
  const Function* function = trigger_that(analyzer, table.relation, puts_anything_together);
  if (function == nullptr) return std::nullopt;
  return runs_anything("a write over several shards to " + table.display +
                           ", of which a trigger calls the function " + function->name + ", which",
                       true);
}

std::optional<Error> triggers_elsewhere(const Analyzer& analyzer, const RelationUse& table) {
  if (table.relation == nullptr || (table.kind != Kind::kSharded && table.kind != Kind::kReplicated))
    return std::nullopt;
  for (const std::string& name : table.relation->triggers) {
    const std::size_t dot = name.find('.');
    const Function* function = analyzer.catalog().function(name.substr(0, dot), name.substr(dot + 1));
    if (function == nullptr) continue;
    if (auto error = trigger_elsewhere(analyzer, table, *function)) return error;
  }
  for (const std::string& child : table.relation->children) {
    RelationUse partition = table;
    partition.relation = analyzer.catalog().relation_displayed(child);
    if (auto error = triggers_elsewhere(analyzer, partition)) return error;
  }
  return std::nullopt;
}

std::optional<Error> written_elsewhere(const Analyzer& analyzer) {
  if (!analyzer.writes_copies.empty())
    return refused("the function " + analyzer.writes_copies + ", from where it runs",
                   "One shard alone would have what it writes. Send its statements themselves.");
  for (const RelationUse& table : analyzer.written)
    if (auto error = triggers_elsewhere(analyzer, table)) return error;
  return std::nullopt;
}

}  // namespace kintsugi::planner
