#include <algorithm>

#include "planner/plan.h"
#include "shardmap/key_type.h"

namespace kintsugi::planner {
namespace {

using Lines = std::vector<std::string>;

std::string shard_name(ShardId id, const shardmap::ShardMap& map) {
  if (id == 0) return "any shard";
  const shardmap::Shard* shard = map.shard(id);
  return shard != nullptr ? shard->name : "shard " + std::to_string(id);
}

// Shards that get the same text are one line: "s1, s2: SELECT ...".
void print_tasks(const std::vector<ShardTask>& tasks, const shardmap::ShardMap& map, std::string_view own_text,
                 const std::string& indent, Lines& lines) {
  std::vector<std::pair<std::string_view, std::string>> groups;
  for (const ShardTask& task : tasks) {
    const std::string_view text = task.text.empty() ? own_text : std::string_view(task.text);
    const auto same =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == text; });
    if (same == groups.end())
      groups.emplace_back(text, shard_name(task.shard, map));
    else
      same->second += ", " + shard_name(task.shard, map);
  }
  for (const auto& [text, names] : groups) lines.push_back(indent + names + ": " + std::string(text));
}

std::string type_name(std::uint32_t oid) {
  if (const auto type = shardmap::key_type_of_oid(oid)) return std::string(shardmap::name_of(*type));
  return "type " + std::to_string(oid);
}

std::string keys_of(const std::vector<SortKey>& keys) {
  std::string out;
  for (const SortKey& key : keys) {
    if (!out.empty()) out += ", ";
    out += "column " + std::to_string(key.column + 1) + " " + type_name(key.type);
    if (key.descending) out += " descending";
    if (key.nulls_first != key.descending) out += key.nulls_first ? " nulls first" : " nulls last";
  }
  return out;
}

std::string_view name_of(Fold fold) {
  switch (fold) {
    case Fold::kFirst: return "first";
    case Fold::kSum: return "sum";
    case Fold::kMin: return "min";
    case Fold::kMax: return "max";
    case Fold::kAnd: return "and";
    case Fold::kOr: return "or";
  }
  return "";
}

std::string describe(const Merge& merge) {
  std::string out;
  switch (merge.kind) {
    case Merge::Kind::kConcat: out = "concatenate"; break;
    case Merge::Kind::kOrdered: out = "merge in order of " + keys_of(merge.keys); break;
    case Merge::Kind::kFold: {
      out = "fold one row from each:";
      for (const FoldColumn& column : merge.columns) {
        out += &column == merge.columns.data() ? " " : ", ";
        out += name_of(column.fold);
        if (column.fold != Fold::kFirst) out += " " + type_name(column.type);
      }
      break;
    }
    case Merge::Kind::kPlaced: {
      out = "rows in the order of tasks";
      for (const std::uint32_t task : merge.placement) out += " " + std::to_string(task + 1);
      break;
    }
    case Merge::Kind::kOne: out = "one answer for all"; break;
  }
  if (merge.distinct) out += ", distinct";
  if (merge.hidden_columns > 0) out += ", hide the last " + std::to_string(merge.hidden_columns);
  if (merge.offset > 0) out += ", offset " + std::to_string(merge.offset);
  if (merge.limit) out += ", limit " + std::to_string(*merge.limit);
  return out;
}

std::string quoted(char c) {
  if (c == '\t') return "tab";
  return std::string("'") + c + "'";
}

struct Printer {
  const shardmap::ShardMap& map;
  std::string_view own_text;
  Lines lines;

  void operator()(const Route& plan) {
    lines.push_back("tier 1: route to " + shard_name(plan.shard, map) +
                    (plan.shardlet.empty() ? "" : ", shardlet " + std::string(plan.shardlet)) +
                    (plan.writes ? ", writes" : ""));
    if (!plan.text.empty()) lines.push_back("  text: " + plan.text);
  }
  void operator()(const FanOut& plan) {
    lines.push_back("tier 2: " + std::to_string(plan.tasks.size()) + " shards" +
                    (plan.writes ? ", writes" : ""));
    print_tasks(plan.tasks, map, own_text, "  ", lines);
    lines.push_back("  merge: " + describe(plan.merge));
  }
  void operator()(const Gather& plan) {
    lines.push_back(std::string(plan.tier == Tier::kFinish ? "tier 3: finish on " : "tier 4: gather on ") +
                    shard_name(plan.finisher, map) + (plan.writes ? ", writes" : ""));
    for (const GatheredRelation& relation : plan.relations) {
      std::string head = "  " + relation.temporary + " of " + relation.of + " (";
      for (std::size_t i = 0; i < relation.columns.size(); ++i)
        head += (i > 0 ? ", " : "") + relation.columns[i] +
                (i < relation.types.size() ? " " + relation.types[i] : std::string());
      head += ")";
      for (std::size_t i = 0; i < relation.primary_key.size(); ++i)
        head += (i > 0 ? ", " : ", primary key ") + relation.primary_key[i];
      for (std::size_t i = 0; i < relation.indexed.size(); ++i)
        head += (i > 0 ? ", " : ", index on ") + relation.indexed[i];
      lines.push_back(std::move(head));
      for (const KeyFilter& key : relation.keys)
        lines.push_back("   " + key.mark + ": AND " + key.column + " is one of " + key.of + "." + key.values +
                        ", when they are few");
      print_tasks(relation.tasks, map, own_text, "    ", lines);
    }
    lines.push_back("  text: " + (plan.text.empty() ? std::string(own_text) : plan.text));
  }
  void operator()(const CopyIn& plan) {
    std::string head = "copy in, ";
    if (plan.map.empty()) {
      head += "every row to every shard";
    } else {
      head += "rows by map " + plan.map + ", key in column";
      for (const int column : plan.key_columns) head += " " + std::to_string(column + 1);
    }
    if (!plan.stage.empty()) head = "copy in, rows are completed on one shard and go to every shard";
    lines.push_back(head);
    std::string shards = "  shards:";
    for (const ShardId shard : plan.shards) shards += " " + shard_name(shard, map);
    lines.push_back(shards);
    constexpr std::string_view kFormats[] = {"text", "csv", "binary"};
    std::string format = "  format: " + std::string(kFormats[static_cast<int>(plan.format)]);
    if (plan.format != CopyIn::Format::kBinary) {
      format += ", delimiter " + quoted(plan.delimiter) + ", null '" + plan.null_text + "'";
      if (plan.format == CopyIn::Format::kCsv)
        format += ", quote " + quoted(plan.quote) + ", escape " + quoted(plan.escape);
      if (plan.header) format += ", header";
    }
    lines.push_back(format);
    if (!plan.text.empty()) lines.push_back("  text: " + plan.text);
  }
  void operator()(const CopyOut& plan) {
    lines.push_back(std::string("copy out, one after the other") + (plan.binary ? ", binary" : "") +
                    (plan.header ? ", header" : ""));
    print_tasks(plan.tasks, map, own_text, "  ", lines);
  }
  void operator()(const Ddl& plan) {
    lines.push_back("definition on " + std::to_string(plan.tasks.size()) + " shards" +
                    (plan.in_transaction ? "" : ", outside a transaction, one after the other"));
    print_tasks(plan.tasks, map, own_text, "  ", lines);
    for (const shardmap::Table& table : plan.record) {
      std::string line = "  record " + table.display();
      if (table.kind == shardmap::TableKind::kSharded) {
        line += " sharded by " + table.map + " (";
        for (std::size_t i = 0; i < table.key.size(); ++i) line += (i > 0 ? ", " : "") + table.key[i];
        line += ")";
      } else {
        line += " " + std::string(shardmap::name_of(table.kind));
      }
      lines.push_back(line);
    }
    for (const auto& [schema, name] : plan.forget) lines.push_back("  forget " + schema + "." + name);
  }
  void operator()(const Hold& plan) {
    lines.push_back("hold: shardlet " + plan.shardlet + " is being handed over");
  }
  void operator()(const Pour& plan) {
    lines.push_back("pour rows of: " + plan.source);
    lines.push_back("  into: " + plan.head + " VALUES ..." + (plan.tail.empty() ? "" : " " + plan.tail));
  }
  void operator()(const ReadFirst& plan) {
    for (std::size_t i = 0; i < plan.reads.size(); ++i)
      lines.push_back(std::string(plan.reads[i].writes ? "write first <" : "read first <") +
                      std::to_string(i + 1) + ">: " + plan.reads[i].query);
    std::string text = plan.parts.front();
    for (std::size_t i = 1; i < plan.parts.size(); ++i) {
      const ReadFirst::Read& read = plan.reads[i - 1];
      text += read.before + (read.form == ReadFirst::Read::Form::kArray ? " = ANY (<" : "<") +
              std::to_string(i) + ">" + (read.form == ReadFirst::Read::Form::kArray ? ")" : "") + read.after +
              plan.parts[i];
    }
    while (text.ends_with(' ')) text.pop_back();
    lines.push_back("  then plan: " + text);
  }
  void operator()(const WorkOut& plan) {
    lines.push_back("work out first on " + shard_name(plan.shard, map) + ":");
    for (const std::string& expression : plan.expressions) lines.push_back("  " + expression);
    std::string text = plan.parts.front();
    for (std::size_t i = 1; i < plan.parts.size(); ++i) text += " <" + std::to_string(i) + "> " + plan.parts[i];
    while (text.ends_with(' ')) text.pop_back();
    lines.push_back("  then plan: " + text);
  }
};

}  // namespace

Tier tier_of(const Plan& plan) {
  if (const auto* gather = std::get_if<Gather>(&plan)) return gather->tier;
  if (std::holds_alternative<ReadFirst>(plan)) return Tier::kGather;
  const bool one = std::holds_alternative<Route>(plan) || std::holds_alternative<Hold>(plan) ||
                   std::holds_alternative<WorkOut>(plan);
  return one ? Tier::kRoute : Tier::kFanOut;
}

bool writes(const Plan& plan) {
  if (const auto* route = std::get_if<Route>(&plan)) return route->writes;
  if (const auto* fan_out = std::get_if<FanOut>(&plan)) return fan_out->writes;
  if (const auto* gather = std::get_if<Gather>(&plan)) return gather->writes;
  return std::holds_alternative<CopyIn>(plan) || std::holds_alternative<Ddl>(plan) ||
         std::holds_alternative<Pour>(plan) || std::holds_alternative<ReadFirst>(plan);
}

std::vector<std::string> lines_of(const Plan& plan, const shardmap::ShardMap& map, std::string_view own_text) {
  Printer printer{map, own_text, {}};
  std::visit(printer, plan);
  return std::move(printer.lines);
}

}  // namespace kintsugi::planner
