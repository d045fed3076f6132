#include "frontend/own_commands.h"

#include <charconv>

namespace kintsugi::frontend {
namespace {

namespace command = admin::command;
using admin::Command;
using admin::ResultColumn;
using shardmap::Bound;
using shardmap::BoundColumn;
using splitmerge::JobRequest;
using splitmerge::JobType;

std::string text(const parser::Name& name) {
  return std::string(name.text);
}

std::vector<std::string> texts(parser::List<parser::Name> names) {
  std::vector<std::string> list;
  for (const parser::Name& name : names) list.push_back(text(name));
  return list;
}

using Kind = parser::KeyValue::Kind;

Result<std::string> key_text(const parser::KeyValue& value) {
  switch (value.kind) {
    case Kind::kNull: return fail(sqlstate::kInvalidParameter, "a sharding key cannot be NULL");
    case Kind::kMinValue:
    case Kind::kMaxValue:
      return fail(sqlstate::kInvalidParameter, "MINVALUE and MAXVALUE are bounds, not values");
    case Kind::kTuple: return fail(sqlstate::kInvalidParameter, "a column of a key cannot be a tuple");
    default: return std::string(value.text);
  }
}

Result<Bound> bound(parser::List<parser::KeyValue> values) {
  Bound made;
  for (const parser::KeyValue& value : values) {
    if (value.kind == Kind::kMinValue) {
      made.push_back(BoundColumn::min());
    } else if (value.kind == Kind::kMaxValue) {
      made.push_back(BoundColumn::max());
    } else {
      KG_TRY(std::string column, key_text(value));
      made.push_back(BoundColumn::value(std::move(column)));
    }
  }
  return made;
}

Result<std::vector<std::string>> list_value(const parser::KeyValue& value) {
  std::vector<std::string> columns;
  if (value.kind != Kind::kTuple) {
    KG_TRY(std::string column, key_text(value));
    columns.push_back(std::move(column));
    return columns;
  }
  for (const parser::KeyValue& part : value.tuple) {
    KG_TRY(std::string column, key_text(part));
    columns.push_back(std::move(column));
  }
  return columns;
}

Result<bool> truth(const parser::Option& option) {
  for (const char* yes : {"true", "on", "1", "yes"}) {
    if (option.value == yes) return true;
  }
  for (const char* no : {"false", "off", "0", "no"}) {
    if (option.value == no) return false;
  }
  return fail(sqlstate::kInvalidParameter, std::string(option.name) + " is true or false");
}

Result<std::uint64_t> rate(const parser::Option& option) {
  if (const auto bytes = splitmerge::rate_named(option.value)) return *bytes;
  return fail(sqlstate::kInvalidParameter, "max_rate is \"" + std::string(option.value) +
                                               "\"; it is a number of bytes a second, as '50MB/s'");
}

Status read_options(parser::List<parser::Option> options, command::StartJob& job) {
  const bool plans = job.request.type == JobType::kDrain || job.request.type == JobType::kRebalance;
  for (const parser::Option& option : options) {
    if (option.name == "wait") {
      KG_TRY(job.wait, truth(option));
    } else if (option.name == "dry_run" && plans) {
      KG_TRY(job.dry_run, truth(option));
    } else if (option.name == "by" && job.request.type == JobType::kRebalance) {
      if (option.value != "rows" && option.value != "bytes")
        return fail(sqlstate::kInvalidParameter, "a rebalance is by rows or by bytes");
      job.request.by_rows = option.value == "rows";
    } else if (option.name == "mode") {
      const auto mode = splitmerge::move_mode_named(option.value);
      if (!mode) return fail(sqlstate::kInvalidParameter, "mode is online or offline");
      job.request.mode = *mode;
    } else if (option.name == "max_rate") {
      KG_TRY(job.request.max_rate, rate(option));
    } else {
      return fail(sqlstate::kInvalidParameter, "there is no option \"" + std::string(option.name) + "\"",
                  job.request.type == JobType::kRebalance
                      ? "The options are wait, dry_run, by, mode and max_rate."
                  : plans ? "The options are wait, dry_run, mode and max_rate."
                          : "The options are wait, mode and max_rate.");
    }
  }
  return {};
}

Result<Command> job(JobRequest request, parser::List<parser::Option> options) {
  command::StartJob made{std::move(request), false, false};
  KG_CHECK(read_options(options, made));
  return Command(std::move(made));
}

Result<std::uint64_t> job_id(std::string_view digits) {
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  if (error != std::errc() || end != digits.data() + digits.size())
    return fail(sqlstate::kUndefinedObject, "job \"" + std::string(digits) + "\" does not exist");
  return id;
}

struct Converter {
  std::string_view schema;

  Result<Command> operator()(const parser::CreateShard* s) const {
    return command::CreateShard{{text(s->name), std::string(s->dsn)}, s->if_not_exists};
  }
  Result<Command> operator()(const parser::AlterShard* s) const {
    return command::AlterShard{.name = text(s->name), .new_name = {}, .dsn = std::string(s->dsn), .state = {}};
  }
  Result<Command> operator()(const parser::DropOwn* s) const {
    switch (s->kind) {
      case parser::DropOwn::Kind::kShard: return command::DropShard{text(s->name), s->if_exists};
      case parser::DropOwn::Kind::kShardMap: return command::DropMap{text(s->name), s->if_exists};
      case parser::DropOwn::Kind::kShardlet: break;
    }
    return command::DropShardlet{text(s->name), s->if_exists};
  }
  Result<Command> operator()(const parser::CreateShardMap* s) const {
    shardmap::NewMap map{.name = text(s->name)};
    map.kind = s->kind == parser::MapKind::kList   ? shardmap::MapKind::kList
               : s->kind == parser::MapKind::kHash ? shardmap::MapKind::kHash
                                                   : shardmap::MapKind::kRange;
    for (const parser::TypeName* type : s->key) {
      if (type->dimensions > 0 || !type->modifiers.empty()) {
        return fail(sqlstate::kNotSupported,
                    "the type of a sharding key is given without a length or precision",
                    "text and numeric hold every varchar and numeric column.");
      }
      KG_TRY(const shardmap::KeyType key, shardmap::key_type_named(type->name.name()));
      map.key_types.push_back(key);
    }
    map.shardlets = s->shardlets;
    map.shards = texts(s->shards);
    return command::CreateMap{std::move(map), s->if_not_exists};
  }
  Result<Command> operator()(const parser::CreateShardlet* s) const {
    shardmap::edit::CreateShardlet made{.map = text(s->map), .name = text(s->name), .shard = text(s->shard)};
    KG_TRY(made.low, bound(s->low));
    KG_TRY(made.high, bound(s->high));
    for (const parser::KeyValue& value : s->values) {
      KG_TRY(auto columns, list_value(value));
      made.values.push_back(std::move(columns));
    }
    return command::CreateShardlet{std::move(made), s->if_not_exists};
  }
  Result<Command> operator()(const parser::AlterShardlet* s) const {
    using Action = parser::AlterShardlet::Action;
    command::AlterShardlet made{.name = text(s->name), .new_name = {}, .state = {}};
    switch (s->action) {
      case Action::kRename: made.new_name = text(s->new_name); break;
      case Action::kOffline: made.state = shardmap::ShardletState::kOffline; break;
      case Action::kOnline: made.state = shardmap::ShardletState::kOnline; break;
      case Action::kReadOnly: made.state = shardmap::ShardletState::kReadOnly; break;
    }
    return made;
  }
  Result<Command> operator()(const parser::AlterTable* s) const {
    const parser::QualifiedName& name = s->table.name;
    shardmap::Table table{.schema = std::string(name.schema().empty() ? schema : name.schema()),
                          .name = std::string(name.name())};
    table.kind = s->placement->replicated ? shardmap::TableKind::kReplicated : shardmap::TableKind::kSharded;
    table.map = text(s->placement->map);
    table.key = texts(s->placement->columns);
    return command::PlaceTable{std::move(table), s->if_exists};
  }
  Result<Command> operator()(const parser::SplitShardlet* s) const {
    JobRequest request{.type = JobType::kSplit, .shardlets = {text(s->name)}, .to = text(s->to_shard)};
    if (!s->at.empty()) {  // else in the middle of the data
      KG_TRY(request.at, bound(s->at));
    }
    request.into = texts(s->into);
    request.move = text(s->move);
    return job(std::move(request), s->options);
  }
  Result<Command> operator()(const parser::MergeShardlets* s) const {
    JobRequest request{
        .type = JobType::kMerge, .shardlets = {text(s->left), text(s->right)}, .to = text(s->on_shard)};
    if (!s->into.text.empty()) request.into = {text(s->into)};
    return job(std::move(request), s->options);
  }
  Result<Command> operator()(const parser::MoveShardlet* s) const {
    return job({.type = JobType::kMove, .shardlets = {text(s->name)}, .to = text(s->to_shard)}, s->options);
  }
  Result<Command> operator()(const parser::Rebalance* s) const {
    JobRequest request{.type = JobType::kRebalance};
    request.map = text(s->map);
    return job(std::move(request), s->options);
  }
  Result<Command> operator()(const parser::DrainShard* s) const {
    JobRequest request{.type = JobType::kDrain};
    request.shard = text(s->name);
    return job(std::move(request), s->options);
  }
  Result<Command> operator()(const parser::ControlJob* s) const {
    KG_TRY(const std::uint64_t id, job_id(s->id));
    return command::ControlJob{id, s->resume};
  }
  Result<Command> operator()(const parser::ShowOwn* s) const {
    using What = parser::ShowOwn::What;
    using Shown = command::Show::What;
    command::Show made;
    made.map = text(s->map);
    switch (s->what) {
      case What::kShards: made.what = Shown::kShards; break;
      case What::kShardMaps: made.what = Shown::kMaps; break;
      case What::kShardlets: made.what = Shown::kShardlets; break;
      case What::kShardedTables: made.what = Shown::kTables; break;
      case What::kJob: {
        KG_TRY(const std::uint64_t id, job_id(s->job));
        made.name = std::to_string(id);
        made.what = Shown::kJobs;
        break;
      }
      case What::kJobs: made.what = Shown::kJobs; break;
      case What::kRouters: made.what = Shown::kRouters; break;
      case What::kPools: made.what = Shown::kPools; break;
      case What::kStats: made.what = Shown::kStats; break;
    }
    return made;
  }
  template <class Other>
  Result<Command> operator()(const Other&) const {
    return fail(sqlstate::kInternal, "this statement is no command");
  }
};

std::int16_t format_of(std::span<const std::int16_t> formats, std::size_t column) {
  if (formats.empty()) return 0;
  return formats.size() == 1 ? formats[0] : column < formats.size() ? formats[column] : std::int16_t{0};
}

// A value in PostgreSQL's binary form; text is the same in both.
std::string binary(const ResultColumn& column, std::string_view value) {
  constexpr std::uint32_t kBool = 16, kBigint = 20;
  if (column.type_oid == kBool) return std::string(1, value == "t" ? '\1' : '\0');
  if (column.type_oid != kBigint) return std::string(value);
  std::int64_t number = 0;
  std::from_chars(value.data(), value.data() + value.size(), number);
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) {
    bytes += static_cast<char>((static_cast<std::uint64_t>(number) >> shift) & 0xff);
  }
  return bytes;
}

}  // namespace

bool is_command(const parser::Statement& statement) {
  if (const auto* alter = statement.get<parser::AlterTable>()) return alter->placement != nullptr;
  return statement.get<parser::CreateShard>() || statement.get<parser::AlterShard>() ||
         statement.get<parser::CreateShardMap>() || statement.get<parser::CreateShardlet>() ||
         statement.get<parser::AlterShardlet>() || statement.get<parser::DropOwn>() ||
         statement.get<parser::SplitShardlet>() || statement.get<parser::MergeShardlets>() ||
         statement.get<parser::MoveShardlet>() || statement.get<parser::Rebalance>() ||
         statement.get<parser::DrainShard>() || statement.get<parser::ControlJob>() ||
         statement.get<parser::ShowOwn>();
}

Result<Command> command_of(const parser::Statement& statement, std::string_view schema) {
  return std::visit(Converter{schema}, statement.body());
}

void append_columns(std::string& out, std::span<const ResultColumn> columns,
                    std::span<const std::int16_t> formats) {
  std::vector<wire::Column> described;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    wire::Column column{.name = columns[i].name, .type_oid = columns[i].type_oid};
    column.type_size = columns[i].type_oid == 20   ? std::int16_t{8}
                       : columns[i].type_oid == 16 ? std::int16_t{1}
                                                   : std::int16_t{-1};
    column.format = format_of(formats, i);
    described.push_back(column);
  }
  wire::append_row_description(out, described);
}

void append_rows(std::string& out, const admin::CommandResult& result, std::span<const std::int16_t> formats) {
  std::vector<std::optional<std::string>> values(result.columns.size());
  std::vector<std::optional<std::string_view>> views(result.columns.size());
  for (const admin::Json& object : result.objects) {
    for (std::size_t i = 0; i < result.columns.size(); ++i) {
      values[i] = result.value(object, result.columns[i]);
      if (values[i] && format_of(formats, i) == 1) values[i] = binary(result.columns[i], *values[i]);
      views[i].reset();
      if (values[i]) views[i] = *values[i];
    }
    wire::append_data_row(out, views);
  }
}

}  // namespace kintsugi::frontend
