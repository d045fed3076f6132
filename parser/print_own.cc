#include "parser/tree_printer.h"

namespace kintsugi::parser {

void TreePrinter::key(const KeyValue& v) {
  using Kind = KeyValue::Kind;
  switch (v.kind) {
    case Kind::kMinValue: return say("minvalue");
    case Kind::kMaxValue: return say("maxvalue");
    case Kind::kNull: return say("null");
    case Kind::kBoolean:
    case Kind::kNumber: return say(v.text);
    case Kind::kString: return quoted(v.text);
    case Kind::kTuple:
      open({});
      for (const KeyValue& part : v.tuple) key(part);
      return close();
  }
}

void TreePrinter::keys(std::string_view head, const List<KeyValue>& values) {
  clause(head, values, [this](const KeyValue& v) { key(v); });
}

void TreePrinter::put(const CreateShard* n) {
  open("create-shard");
  say(n->name);
  quoted(n->dsn);
  flag(n->if_not_exists, "if-not-exists");
  close();
}

void TreePrinter::put(const AlterShard* n) {
  open("alter-shard");
  say(n->name);
  quoted(n->dsn);
  close();
}

void TreePrinter::put(const CreateShardMap* n) {
  static constexpr std::string_view kKinds[] = {"list", "range", "hash"};
  open("create-shard-map");
  say(n->name);
  say(kKinds[static_cast<std::size_t>(n->kind)]);
  for (const TypeName* t : n->key) put(*t);
  if (n->shardlets > 0) say(std::to_string(n->shardlets));
  names("shards", n->shards);
  flag(n->if_not_exists, "if-not-exists");
  close();
}

void TreePrinter::put(const CreateShardlet* n) {
  open("create-shardlet");
  say(n->name);
  say(n->map);
  keys("from", n->low);
  keys("to", n->high);
  keys("in", n->values);
  say(n->shard);
  flag(n->if_not_exists, "if-not-exists");
  close();
}

void TreePrinter::put(const AlterShardlet* n) {
  static constexpr std::string_view kActions[] = {"rename", "offline", "online", "read-only"};
  open("alter-shardlet");
  say(n->name);
  say(kActions[static_cast<std::size_t>(n->action)]);
  if (!n->new_name.text.empty()) say(n->new_name);
  close();
}

void TreePrinter::put(const DropOwn* n) {
  static constexpr std::string_view kKinds[] = {"drop-shard", "drop-shard-map", "drop-shardlet"};
  open(kKinds[static_cast<std::size_t>(n->kind)]);
  say(n->name);
  flag(n->if_exists, "if-exists");
  close();
}

void TreePrinter::put(const SplitShardlet* n) {
  open("split");
  say(n->name);
  keys("at", n->at);
  names("into", n->into);
  clause("move", n->move);
  clause("to", n->to_shard);
  options(n->options);
  close();
}

void TreePrinter::put(const MergeShardlets* n) {
  open("merge-shardlets");
  say(n->left);
  say(n->right);
  clause("into", n->into);
  clause("on", n->on_shard);
  options(n->options);
  close();
}

void TreePrinter::put(const MoveShardlet* n) {
  open("move-shardlet");
  say(n->name);
  say(n->to_shard);
  options(n->options);
  close();
}

void TreePrinter::put(const Rebalance* n) {
  open("rebalance");
  if (!n->map.text.empty()) say(n->map);
  options(n->options);
  close();
}

void TreePrinter::put(const DrainShard* n) {
  open("drain");
  say(n->name);
  options(n->options);
  close();
}

void TreePrinter::put(const ControlJob* n) {
  open(n->resume ? "resume-job" : "cancel-job");
  say(n->id);
  close();
}

void TreePrinter::put(const ShowOwn* n) {
  static constexpr std::string_view kWhat[] = {"shards", "shard-maps", "shardlets", "sharded-tables", "jobs",
                                               "job",    "routers",    "pools",     "stats"};
  open("show-own");
  say(kWhat[static_cast<std::size_t>(n->what)]);
  if (!n->map.text.empty()) say(n->map);
  if (!n->job.empty()) say(n->job);
  close();
}

}  // namespace kintsugi::parser
