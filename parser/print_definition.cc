#include "parser/tree_printer.h"

namespace kintsugi::parser {

void TreePrinter::constraint(const Constraint& c) {
  static constexpr std::string_view kKinds[] = {"not-null",    "null",   "default",     "check",
                                                "primary-key", "unique", "foreign-key", "generated",
                                                "identity",    "exclude"};
  open(kKinds[static_cast<std::size_t>(c.kind)]);
  clause("name", c.name);
  flag(c.always, "always");
  if (c.expr != nullptr) put(c.expr);
  names("columns", c.columns);
  clause("using-index", c.using_index);
  if (!c.references.empty()) say(c.references);
  names("referenced", c.referenced_columns);
  close();
}

void TreePrinter::column(const ColumnDefinition& c) {
  open("column");
  say(c.name);
  if (c.type != nullptr) put(*c.type);
  clause("collate", c.collation);
  for (const Constraint& k : c.constraints) constraint(k);
  close();
}

void TreePrinter::placement(const Placement* p) {
  if (p == nullptr) return;
  open(p->replicated ? "replicated" : "shard-by");
  if (!p->map.text.empty()) say(p->map);
  for (const Name& c : p->columns) say(c);
  close();
}

void TreePrinter::put(const CreateTable* n) {
  open("create-table");
  say(n->name);
  flag(n->if_not_exists, "if-not-exists");
  flag(n->temporary, "temporary");
  flag(n->unlogged, "unlogged");
  for (const ColumnDefinition& c : n->columns) column(c);
  for (const Constraint& c : n->constraints) constraint(c);
  for (const QualifiedName& l : n->like) clause("like", l);
  for (const QualifiedName& l : n->inherits) clause("inherits", l);
  clause("partition-of", n->partition_of);
  clause("of", n->of_type);
  if (!n->partition_by.empty()) {
    open("partition-by");
    say(n->partition_by);
    for (const PartitionElement& p : n->partition_key) {
      if (p.expr != nullptr)
        put(p.expr);
      else
        say(p.column);
    }
    close();
  }
  placement(n->placement);
  close();
}

void TreePrinter::put(const CreateTableAs* n) {
  open("create-table-as");
  say(n->name);
  flag(n->if_not_exists, "if-not-exists");
  flag(n->temporary, "temporary");
  names("columns", n->columns);
  put(n->query);
  flag(!n->with_data, "no-data");
  close();
}

void TreePrinter::put(const AlterTable* n) {
  static constexpr std::string_view kKinds[] = {
      "table", "index", "sequence", "view", "materialized-view", "foreign-table"};
  static constexpr std::string_view kCommands[] = {"add-column",        "drop-column",      "add-constraint",
                                                   "drop-constraint",   "set-default",      "drop-default",
                                                   "set-not-null",      "drop-not-null",    "set-type",
                                                   "attach-partition",  "detach-partition", "rename-column",
                                                   "rename-constraint", "rename-to",        "set-schema",
                                                   "owner-to",          "add-identity",     "alter-identity",
                                                   "inherit",           "no-inherit",       "other"};
  open("alter-" + std::string(kKinds[static_cast<std::size_t>(n->kind)]));
  table(n->table);
  flag(n->if_exists, "if-exists");
  for (const AlterCommand& c : n->commands) {
    open(kCommands[static_cast<std::size_t>(c.kind)]);
    if (c.kind == AlterCommand::Kind::kAddColumn)
      column(c.column);
    else if (c.kind == AlterCommand::Kind::kAddConstraint)
      constraint(c.constraint);
    else if (!c.name.text.empty())
      say(c.name);
    clause("to", c.new_name);
    if (c.type != nullptr) put(*c.type);
    if (c.expr != nullptr) put(c.expr);
    if (!c.partition.empty()) say(c.partition);
    flag(c.if_exists, "if-exists");
    flag(c.if_not_exists, "if-not-exists");
    flag(c.cascade, "cascade");
    close();
  }
  placement(n->placement);
  close();
}

void TreePrinter::put(const CreateIndex* n) {
  open("create-index");
  if (!n->name.text.empty()) say(n->name);
  flag(n->unique, "unique");
  flag(n->concurrently, "concurrently");
  flag(n->if_not_exists, "if-not-exists");
  clause("on", n->table.name);
  say(n->method);
  index_elements("elements", n->elements);
  index_elements("include", n->include);
  clause("where", n->where);
  close();
}

void TreePrinter::put(const CreateView* n) {
  open(n->materialized ? "create-materialized-view" : "create-view");
  say(n->name);
  flag(n->replace, "replace");
  flag(n->temporary, "temporary");
  flag(n->if_not_exists, "if-not-exists");
  names("columns", n->columns);
  put(n->query);
  close();
}

void TreePrinter::put(const CreateSequence* n) {
  open("create-sequence");
  say(n->name);
  flag(n->if_not_exists, "if-not-exists");
  flag(n->temporary, "temporary");
  close();
}

void TreePrinter::put(const CreateSchema* n) {
  open("create-schema");
  if (!n->name.text.empty()) say(n->name);
  flag(n->if_not_exists, "if-not-exists");
  close();
}

void TreePrinter::put(const CreateType* n) {
  static constexpr std::string_view kKinds[] = {"composite", "enum", "range", "base", "shell", "domain"};
  open("create-type");
  say(n->name);
  say(kKinds[static_cast<std::size_t>(n->kind)]);
  for (std::string_view l : n->labels) quoted(l);
  if (n->base != nullptr) put(*n->base);
  close();
}

void TreePrinter::put(const CreateFunction* n) {
  static constexpr std::string_view kVolatilities[] = {"volatile", "stable", "immutable"};
  open(n->procedure ? "create-procedure" : "create-function");
  say(n->name);
  flag(n->replace, "replace");
  say(std::to_string(n->arguments));
  say(kVolatilities[static_cast<std::size_t>(n->volatility)]);
  close();
}

void TreePrinter::put(const DropObjects* n) {
  open("drop");
  quoted(n->kind);
  for (const QualifiedName& name : n->names) say(name);
  clause("on", n->on_table);
  flag(n->if_exists, "if-exists");
  flag(n->concurrently, "concurrently");
  flag(n->cascade, "cascade");
  close();
}

void TreePrinter::put(const Truncate* n) {
  open("truncate");
  for (const TableRef& t : n->tables) table(t);
  flag(n->restart_identity, "restart-identity");
  flag(n->cascade, "cascade");
  close();
}

void TreePrinter::put(const Grant* n) {
  open(n->revoke ? "revoke" : "grant");
  if (!n->kind.empty()) quoted(n->kind);
  for (const QualifiedName& name : n->objects) say(name);
  close();
}

void TreePrinter::put(const Comment* n) {
  open("comment");
  quoted(n->kind);
  if (!n->object.empty()) say(n->object);
  close();
}

}  // namespace kintsugi::parser
