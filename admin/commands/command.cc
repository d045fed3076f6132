#include "admin/commands/command.h"

#include "base/dsn_text.h"
#include "base/sql_quote.h"

namespace kintsugi::admin {
namespace {

using namespace command;
using shardmap::Bound;
using shardmap::BoundColumn;

std::string named(const std::string& name) {
  const bool plain = !name.empty() && (name[0] < '0' || name[0] > '9') &&
                     name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
  return plain ? name : quote_identifier(name);
}

std::string list(const std::vector<std::string>& items, std::string (*shown)(const std::string&)) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + shown(item);
  return "(" + text + ")";
}

std::string literal(const std::string& value) {
  return quote_literal(value);
}

std::string shown(const Bound& bound) {
  std::string text;
  for (const BoundColumn& column : bound) {
    if (!text.empty()) text += ", ";
    text += column.kind == BoundColumn::Kind::kMin   ? "MINVALUE"
            : column.kind == BoundColumn::Kind::kMax ? "MAXVALUE"
                                                     : quote_literal(column.text);
  }
  return "(" + text + ")";
}

std::string upper(std::string_view word) {
  std::string text(word);
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string shown_job(const StartJob& c) {
  using splitmerge::JobType;
  const splitmerge::JobRequest& r = c.request;
  std::string text;
  switch (r.type) {
    case JobType::kMove: text = "MOVE SHARDLET " + named(r.shardlets.at(0)); break;
    case JobType::kSplit: text = "SPLIT SHARDLET " + named(r.shardlets.at(0)); break;
    case JobType::kMerge:
      text = "MERGE SHARDLETS ";
      for (std::size_t i = 0; i < r.shardlets.size(); ++i) text += (i > 0 ? ", " : "") + named(r.shardlets[i]);
      break;
    case JobType::kDrain: text = "DRAIN SHARD " + named(r.shard); break;
    case JobType::kRebalance:
      text = "REBALANCE";
      if (!r.map.empty()) text += " SHARD MAP " + named(r.map);
      break;
    case JobType::kProvision: text = "provision shard " + named(r.shard); break;
  }
  if (r.at) text += " AT " + shown(*r.at);
  if (!r.into.empty()) text += " INTO " + list(r.into, named);
  if (!r.move.empty()) text += " MOVE " + named(r.move);
  if (!r.to.empty()) text += std::string(r.type == JobType::kMerge ? " ON" : " TO") + " SHARD " + named(r.to);
  if (r.by_rows) text += " WITH (by = rows)";
  if (r.mode == splitmerge::MoveMode::kOffline) text += " WITH (mode = offline)";
  return text;
}

const char* if_exists(bool said) {
  return said ? "IF EXISTS " : "";
}
const char* if_not_exists(bool said) {
  return said ? "IF NOT EXISTS " : "";
}

struct Describer {
  std::string operator()(const CreateShard& c) const {
    return std::string("CREATE SHARD ") + if_not_exists(c.if_not_exists) + named(c.shard.name) + " DSN " +
           quote_literal(without_password(c.shard.dsn));
  }
  std::string operator()(const AlterShard& c) const {
    std::string text = "ALTER SHARD " + named(c.name);
    if (c.dsn) text += " SET DSN " + quote_literal(without_password(*c.dsn));
    if (c.state) text += " SET " + upper(shardmap::name_of(*c.state));
    if (c.new_name) text += " RENAME TO " + named(*c.new_name);
    return text;
  }
  std::string operator()(const DropShard& c) const {
    return std::string("DROP SHARD ") + if_exists(c.if_exists) + named(c.name);
  }
  std::string operator()(const CreateMap& c) const {
    std::string text = std::string("CREATE SHARD MAP ") + if_not_exists(c.if_not_exists) + named(c.map.name) +
                       " BY " + upper(shardmap::name_of(c.map.kind)) + " (" +
                       shardmap::list_of(c.map.key_types) + ")";
    if (c.map.shardlets > 0) text += " SHARDLETS " + std::to_string(c.map.shardlets);
    if (!c.map.shards.empty()) text += " ON SHARDS " + list(c.map.shards, named);
    return text;
  }
  std::string operator()(const DropMap& c) const {
    return std::string("DROP SHARD MAP ") + if_exists(c.if_exists) + named(c.name);
  }
  std::string operator()(const CreateShardlet& c) const {
    std::string text = std::string("CREATE SHARDLET ") + if_not_exists(c.if_not_exists) +
                       named(c.shardlet.name) + " OF " + named(c.shardlet.map) + " FOR VALUES ";
    if (c.shardlet.values.empty()) {
      text += "FROM " + shown(c.shardlet.low) + " TO " + shown(c.shardlet.high);
    } else {
      std::string values;
      for (const auto& value : c.shardlet.values) {
        values += (values.empty() ? "" : ", ") + (value.size() == 1 ? literal(value[0]) : list(value, literal));
      }
      text += "IN (" + values + ")";
    }
    return text + " ON SHARD " + named(c.shardlet.shard);
  }
  std::string operator()(const AlterShardlet& c) const {
    std::string text = "ALTER SHARDLET " + named(c.name);
    if (c.state) text += " SET " + upper(shardmap::name_of(*c.state));
    if (c.new_name) text += " RENAME TO " + named(*c.new_name);
    return text;
  }
  std::string operator()(const DropShardlet& c) const {
    return std::string("DROP SHARDLET ") + if_exists(c.if_exists) + named(c.name);
  }
  std::string operator()(const PlaceTable& c) const {
    std::string text = std::string("ALTER TABLE ") + if_exists(c.if_exists) + named(c.table.schema) + "." +
                       named(c.table.name);
    if (c.table.kind == shardmap::TableKind::kReplicated) return text + " REPLICATED";
    return text + " SHARD BY " + named(c.table.map) + " " + list(c.table.key, named);
  }
  std::string operator()(const UnplaceTable& c) const {
    return "unshard table " + named(c.schema) + "." + named(c.name);
  }
  std::string operator()(const StartJob& c) const { return shown_job(c); }
  std::string operator()(const ControlJob& c) const {
    return (c.resume ? "RESUME JOB " : "CANCEL JOB ") + std::to_string(c.id);
  }
  std::string operator()(const Show& c) const {
    static constexpr const char* kWhat[] = {"SHARDS",  "SHARD MAPS", "SHARDLETS", "SHARDED TABLES",  "JOBS",
                                            "ROUTERS", "POOLS",      "STATS",     "SLOW STATEMENTS", "AUDIT"};
    return std::string("SHOW ") + kWhat[static_cast<std::size_t>(c.what)];
  }
  std::string operator()(const Lookup& c) const {
    return "lookup " + named(c.map) + " " + list(c.key, literal);
  }
  std::string operator()(const Check&) const { return "recover check"; }
  std::string operator()(const Resolve& c) const {
    return std::string("recover resolve from ") + (c.from_shards ? "shards" : "store") +
           (c.dry_run ? ", dry run" : "");
  }
  std::string operator()(const Rebuild& c) const {
    return "recover rebuild from " + std::to_string(c.dsns.size()) + " shards";
  }
  std::string operator()(const Export&) const { return "map export"; }
  std::string operator()(const Import&) const { return "map import"; }
};

struct Tag {
  std::string_view operator()(const CreateShard&) const { return "CREATE SHARD"; }
  std::string_view operator()(const AlterShard&) const { return "ALTER SHARD"; }
  std::string_view operator()(const DropShard&) const { return "DROP SHARD"; }
  std::string_view operator()(const CreateMap&) const { return "CREATE SHARD MAP"; }
  std::string_view operator()(const DropMap&) const { return "DROP SHARD MAP"; }
  std::string_view operator()(const CreateShardlet&) const { return "CREATE SHARDLET"; }
  std::string_view operator()(const AlterShardlet&) const { return "ALTER SHARDLET"; }
  std::string_view operator()(const DropShardlet&) const { return "DROP SHARDLET"; }
  std::string_view operator()(const PlaceTable&) const { return "ALTER TABLE"; }
  std::string_view operator()(const UnplaceTable&) const { return "ALTER TABLE"; }
  std::string_view operator()(const StartJob& c) const {
    using splitmerge::JobType;
    switch (c.request.type) {
      case JobType::kMove: return "MOVE SHARDLET";
      case JobType::kSplit: return "SPLIT SHARDLET";
      case JobType::kMerge: return "MERGE SHARDLETS";
      case JobType::kDrain: return "DRAIN SHARD";
      case JobType::kRebalance: return "REBALANCE";
      case JobType::kProvision: break;
    }
    return "PROVISION";
  }
  std::string_view operator()(const ControlJob& c) const { return c.resume ? "RESUME JOB" : "CANCEL JOB"; }
  std::string_view operator()(const Show&) const { return "SHOW"; }
  std::string_view operator()(const Lookup&) const { return "LOOKUP"; }
  std::string_view operator()(const Check&) const { return "RECOVER CHECK"; }
  std::string_view operator()(const Resolve&) const { return "RECOVER RESOLVE"; }
  std::string_view operator()(const Rebuild&) const { return "RECOVER REBUILD"; }
  std::string_view operator()(const Export&) const { return "EXPORT"; }
  std::string_view operator()(const Import&) const { return "IMPORT"; }
};

}  // namespace

bool only_looks(const Command& command) {
  if (const auto* resolve = std::get_if<Resolve>(&command)) return resolve->dry_run;
  if (const auto* job = std::get_if<StartJob>(&command)) return job->dry_run;
  return std::holds_alternative<Show>(command) || std::holds_alternative<Lookup>(command) ||
         std::holds_alternative<Check>(command) || std::holds_alternative<Export>(command);
}

Role role_needed(const Command& command) {
  if (const auto* show = std::get_if<Show>(&command)) {
    return show->what == Show::What::kAudit ? Role::kOperator : Role::kViewer;
  }
  if (std::holds_alternative<Lookup>(command)) return Role::kViewer;
  if (std::holds_alternative<Check>(command) || std::holds_alternative<StartJob>(command) ||
      std::holds_alternative<ControlJob>(command)) {
    return Role::kOperator;
  }
  if (const auto* alter = std::get_if<AlterShardlet>(&command); alter != nullptr && !alter->new_name) {
    return Role::kOperator;
  }
  return Role::kAdmin;  // an export holds passwords
}

std::string describe(const Command& command) {
  return std::visit(Describer{}, command);
}

std::string_view tag_of(const Command& command) {
  return std::visit(Tag{}, command);
}

std::string_view name_of(Role role) {
  static constexpr std::string_view kNames[] = {"viewer", "operator", "admin"};
  return kNames[static_cast<std::size_t>(role)];
}

std::optional<Role> role_named(std::string_view name) {
  for (const Role role : {Role::kViewer, Role::kOperator, Role::kAdmin}) {
    if (name_of(role) == name) return role;
  }
  return std::nullopt;
}

std::string_view name_of(Face face) {
  return face == Face::kSql ? "sql" : "rest";
}

}  // namespace kintsugi::admin
