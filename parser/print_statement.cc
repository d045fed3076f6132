#include "parser/to_string.h"
#include "parser/tree_printer.h"

namespace kintsugi::parser {

void TreePrinter::modes(const TransactionModes& m) {
  static constexpr std::string_view kLevels[] = {"", "read-uncommitted", "read-committed", "repeatable-read",
                                                 "serializable"};
  if (m.isolation != Isolation::kDefault) say(kLevels[static_cast<std::size_t>(m.isolation)]);
  if (m.read_only) say(*m.read_only ? "read-only" : "read-write");
  if (m.deferrable) say(*m.deferrable ? "deferrable" : "not-deferrable");
}

void TreePrinter::options(const List<Option>& items) {
  clause("options", items, [this](const Option& o) {
    open({});
    say(o.name);
    if (o.has_value) quoted(o.value);
    for (std::string_view v : o.list) quoted(v);
    flag(o.star, "*");
    close();
  });
}

void TreePrinter::put(const Transaction* n) {
  static constexpr std::string_view kKinds[] = {"begin",     "commit",          "rollback",
                                                "savepoint", "release",         "rollback-to",
                                                "prepare",   "commit-prepared", "rollback-prepared"};
  open(n->start ? "start" : kKinds[static_cast<std::size_t>(n->kind)]);
  modes(n->modes);
  if (!n->savepoint.text.empty()) say(n->savepoint);
  if (!n->gid.empty()) quoted(n->gid);
  flag(n->chain, "chain");
  close();
}

void TreePrinter::put(const DeclareCursor* n) {
  open("declare");
  say(n->name);
  flag(n->hold, "hold");
  flag(n->scroll, "scroll");
  flag(n->binary, "binary");
  put(n->query);
  close();
}

void TreePrinter::put(const Fetch* n) {
  static constexpr std::string_view kDirections[] = {"forward", "backward", "absolute", "relative"};
  open(n->move ? "move" : "fetch");
  say(n->cursor);
  say(kDirections[static_cast<std::size_t>(n->direction)]);
  say(n->all ? "all" : std::to_string(n->count));
  close();
}

void TreePrinter::put(const CloseCursor* n) {
  open("close");
  if (n->all)
    say("all");
  else
    say(n->name);
  close();
}

void TreePrinter::put(const Prepare* n) {
  open("prepare");
  say(n->name);
  for (const TypeName* t : n->types) put(*t);
  put(n->body);
  close();
}

void TreePrinter::put(const Execute* n) {
  open("execute");
  say(n->name);
  for (const Expr* e : n->args) put(e);
  close();
}

void TreePrinter::put(const Deallocate* n) {
  open("deallocate");
  if (n->all)
    say("all");
  else
    say(n->name);
  close();
}

void TreePrinter::put(const Set* n) {
  static constexpr std::string_view kForms[] = {
      "set",          "set-default",    "set-current", "set-transaction", "set-characteristics",
      "set-snapshot", "set-constraints"};
  open(kForms[static_cast<std::size_t>(n->form)]);
  flag(n->local, "local");
  if (!n->name.empty()) say(n->name);
  for (const SettingValue& v : n->values) {
    if (v.kind == SettingValue::Kind::kString)
      quoted(v.text);
    else
      say(v.text);
  }
  modes(n->modes);
  close();
}

void TreePrinter::put(const Reset* n) {
  open("reset");
  say(n->all ? "all" : n->name);
  close();
}

void TreePrinter::put(const Show* n) {
  open("show");
  say(n->all ? "all" : n->name);
  close();
}

void TreePrinter::put(const Discard* n) {
  static constexpr std::string_view kKinds[] = {"all", "plans", "sequences", "temp"};
  open("discard");
  say(kKinds[static_cast<std::size_t>(n->kind)]);
  close();
}

void TreePrinter::put(const LockTable* n) {
  open("lock");
  for (const TableRef& t : n->tables) table(t);
  if (!n->mode.empty()) quoted(n->mode);
  flag(n->no_wait, "nowait");
  close();
}

void TreePrinter::put(const Notify* n) {
  static constexpr std::string_view kKinds[] = {"notify", "listen", "unlisten"};
  open(kKinds[static_cast<std::size_t>(n->kind)]);
  if (n->all)
    say("all");
  else
    say(n->channel);
  if (!n->payload.empty()) quoted(n->payload);
  close();
}

void TreePrinter::put(const Copy* n) {
  open(n->from ? "copy-from" : "copy-to");
  if (n->query != nullptr)
    put(*n->query);
  else
    table(n->table);
  names("columns", n->columns);
  flag(n->program, "program");
  if (n->standard_stream)
    say("stream");
  else
    quoted(n->file);
  options(n->options);
  clause("where", n->where);
  close();
}

void TreePrinter::put(const Explain* n) {
  open("explain");
  flag(n->route, "route");
  flag(n->analyze, "analyze");
  flag(n->verbose, "verbose");
  options(n->options);
  if (n->other)
    say("other");
  else
    put(n->body);
  close();
}

void TreePrinter::put(const Vacuum* n) {
  open(n->analyze_only ? "analyze" : "vacuum");
  for (const TableRef& t : n->tables) table(t);
  close();
}

void TreePrinter::put(const Call* n) {
  open("call-procedure");
  call(*n->call);
  close();
}

void TreePrinter::put(const Utility* n) {
  open("utility");
  quoted(n->head);
  if (!n->relation.empty()) say(n->relation);
  close();
}

std::string to_string(const Statement& statement) {
  TreePrinter printer;
  std::visit([&printer](const auto& node) { printer.put(node); }, statement.body());
  return printer.take();
}

std::string to_string(const Query& query) {
  TreePrinter printer;
  printer.put(&query);
  return printer.take();
}

std::string to_string(const Expr& expr) {
  TreePrinter printer;
  printer.put(&expr);
  return printer.take();
}

std::string to_string(const TypeName& type) {
  TreePrinter printer;
  printer.put(type);
  return printer.take();
}

}  // namespace kintsugi::parser
