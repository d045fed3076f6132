#include "admin/commands/command_layer.h"

#include "admin/commands/audit.h"
#include "admin/commands/expected_epoch.h"
#include "admin/commands/job_commands.h"
#include "admin/commands/meant.h"
#include "admin/commands/show.h"
#include "base/dsn_text.h"
#include "executor/dsn.h"
#include "shardmap/map_feed.h"
#include "shardmap/recovery.h"

namespace kintsugi::admin {
namespace {

using namespace command;
using shardmap::MapCommands;
using shardmap::MapPtr;
using shardmap::MapStore;

constexpr std::chrono::seconds kOpenPatience{5};
constexpr std::chrono::seconds kRoutersPatience{2};
constexpr std::chrono::seconds kAuditPatience{5};
constexpr std::chrono::seconds kShowPatience{5};

CommandResult made(const MapPtr& map) {
  CommandResult result;
  result.epoch = map->epoch();
  return result;
}

Result<CommandResult> made(const Result<MapPtr>& map) {
  if (!map) return fail(map.error());
  return made(*map);
}

// What is there already, or is not there, as it was asked to be is no error when that was said to be fine.
Result<CommandResult> unless(bool fine, std::string_view state, Result<CommandResult> done) {
  if (done || !fine || done.error().sqlstate != state) return done;
  CommandResult result;
  result.notices.push_back(done.error().message + ", skipping");
  return result;
}

CommandResult sentences(const char* column, const std::vector<std::string>& lines) {
  CommandResult result;
  result.columns = {{column}};
  for (const std::string& line : lines) result.objects.push_back({{column, line}});
  return result;
}

// Each command that changes something, done with `store`.
struct Changer {
  MapStore& store;
  Face face;
  const CommandRun& run;
  const Surroundings& around;

  [[nodiscard]] MapCommands map() const { return MapCommands(store); }

  Result<CommandResult> operator()(const CreateShard& c) const {
    KG_CHECK(executor::Dsn::parse(c.shard.dsn));
    return unless(c.if_not_exists, sqlstate::kDuplicateObject, create(c.shard));
  }
  // Where there are tables already, the new shard gets them from a job before it may be given shardlets.
  Result<CommandResult> create(shardmap::NewShard shard) const {
    KG_TRY(const shardmap::StoredMap stored, store.load(run.deadline));
    const bool empty = stored.map->tables().empty();
    if (!empty) shard.state = shardmap::ShardState::kPreparing;
    KG_TRY(CommandResult done, made(map().create_shard(shard, run.deadline)));
    if (!empty) KG_CHECK(provision_shard(store, shard.name, run, around.look_for_jobs, done));
    return done;
  }
  Result<CommandResult> operator()(const AlterShard& c) const {
    if (!c.dsn && !c.new_name && !c.state) return fail(sqlstate::kInvalidParameter, "nothing is to be changed");
    shardmap::edit::AlterShard edit{c.name, c.new_name, c.dsn, {}, c.state};
    if (c.dsn) {
      KG_TRY(edit.dsn, as_it_is(c.name, *c.dsn));
    }
    return made(map().alter_shard(edit, run.deadline));
  }
  // A DSN that comes back as it was shown, its password hidden, is the one that there is.
  Result<std::string> as_it_is(const std::string& shard, const std::string& dsn) const {
    KG_TRY(const executor::Dsn read, executor::Dsn::parse(dsn));
    if (read.password != kHiddenPassword) return dsn;
    KG_TRY(const shardmap::StoredMap stored, store.load(run.deadline));
    const shardmap::Shard* known = stored.map->shard_named(shard);
    if (known == nullptr) return dsn;
    if (dsn == without_password(known->dsn)) return known->dsn;
    return fail(sqlstate::kInvalidParameter, "the password of this DSN is hidden",
                "Write the password in the place of ***.");
  }
  Result<CommandResult> operator()(const DropShard& c) const {
    return unless(c.if_exists, sqlstate::kUndefinedObject, made(map().drop_shard(c.name, run.deadline)));
  }
  Result<CommandResult> operator()(const CreateMap& c) const {
    return unless(c.if_not_exists, sqlstate::kDuplicateObject, made(map().create_map(c.map, run.deadline)));
  }
  Result<CommandResult> operator()(const DropMap& c) const {
    return unless(c.if_exists, sqlstate::kUndefinedObject, made(map().drop_map(c.name, run.deadline)));
  }
  Result<CommandResult> operator()(const CreateShardlet& c) const {
    return unless(c.if_not_exists, sqlstate::kDuplicateObject,
                  made(map().create_shardlet(c.shardlet, run.deadline)));
  }
  Result<CommandResult> operator()(const AlterShardlet& c) const {
    if (!c.new_name && !c.state) return fail(sqlstate::kInvalidParameter, "nothing is to be changed");
    return made(map().alter_shardlet({c.name, c.new_name, {}, c.state}, run.deadline));
  }
  Result<CommandResult> operator()(const DropShardlet& c) const {
    return unless(c.if_exists, sqlstate::kUndefinedObject, made(map().drop_shardlet(c.name, run.deadline)));
  }
  Result<CommandResult> operator()(const PlaceTable& c) const {
    return unless(c.if_exists, "42P01", place(c.table));
  }
  Result<CommandResult> place(const shardmap::Table& table) const {
    KG_TRY(const MapPtr placed, map().shard_table(table, run.deadline));
    CommandResult done = made(placed);
    if (auto warnings = map().warnings_of(*placed, table, run.deadline)) done.notices = *std::move(warnings);
    return done;
  }
  Result<CommandResult> operator()(const UnplaceTable& c) const {
    return unless(c.if_exists, sqlstate::kUndefinedObject,
                  made(map().drop_table(c.schema, c.name, run.deadline)));
  }
  Result<CommandResult> operator()(const StartJob& c) const { return start_job(store, c, face, run, around); }
  Result<CommandResult> operator()(const ControlJob& c) const {
    return control_job(store, c, face, run, *around.map());
  }
  Result<CommandResult> operator()(const Resolve& c) const {
    const auto side = c.from_shards ? shardmap::Side::kShards : shardmap::Side::kStore;
    KG_TRY(const auto lines, shardmap::resolve(store, side, c.dry_run, run.deadline));
    return sentences("done", lines);
  }
  Result<CommandResult> operator()(const Rebuild& c) const {
    for (const std::string& dsn : c.dsns) KG_CHECK(executor::Dsn::parse(dsn));
    KG_TRY(const auto lines, shardmap::rebuild(store, c.dsns, run.deadline));
    return sentences("done", lines);
  }
  Result<CommandResult> operator()(const Import& c) const {
    return made(map().import_all(c.text, run.deadline));
  }
  template <class Other>
  Result<CommandResult> operator()(const Other&) const {
    return fail(sqlstate::kInternal, "this command changes nothing");
  }
};

std::vector<ResultColumn> check_columns() {
  return {{"kind"}, {"shard"}, {"what"}};
}

Result<CommandResult> check(MapStore& store, const Check& request, Deadline deadline) {
  KG_TRY(const auto differences, shardmap::check(store, request.rows, deadline));
  CommandResult result;
  result.columns = check_columns();
  for (const shardmap::Difference& difference : differences) {
    result.objects.push_back({{"kind", std::string(shardmap::name_of(difference.kind))},
                              {"shard", difference.shard},
                              {"what", difference.what}});
  }
  return result;
}

// An empty store that stands where that of this router's map was is filled first: a change would make another
// map of it. While it is so the lease is not valid (shardmap/map_feed.h).
Status is_ours(MapStore& store, const Surroundings& around, Deadline deadline) {
  if (!around.lease_valid || around.lease_valid()) return {};
  const MapPtr known = around.map();
  if (known->shards().empty() && known->mappings().empty()) return {};
  KG_TRY(const shardmap::StoredMap stored, store.load(deadline.sooner(Deadline::in(kShowPatience))));
  const bool empty = stored.map->shards().empty() && stored.map->mappings().empty();
  if (!empty || stored.map->store_id() == known->store_id()) return {};
  return fail(
      sqlstate::kMapReadOnly, "the map store is empty, and not the one that this router knew",
      "kintsugi recover rebuild fills it from the shards; kintsugi map import from a file. Routing goes on "
      "meanwhile.");
}

bool fills_a_store(const Command& command) {
  return std::holds_alternative<Rebuild>(command) || std::holds_alternative<Import>(command);
}

}  // namespace

std::vector<ResultColumn> columns_of(const Command& command) {
  if (const auto* c = std::get_if<Show>(&command)) return columns_of(*c);
  if (std::holds_alternative<Lookup>(command)) return lookup_columns();
  if (std::holds_alternative<Check>(command)) return check_columns();
  if (std::holds_alternative<Resolve>(command) || std::holds_alternative<Rebuild>(command)) return {{"done"}};
  if (const auto* c = std::get_if<StartJob>(&command)) return c->dry_run ? plan_columns() : job_columns();
  if (std::holds_alternative<ControlJob>(command)) return job_columns();
  return {};
}

CommandLayer::CommandLayer(std::shared_ptr<const Surroundings> surroundings)
    : surroundings_(std::move(surroundings)) {}

CommandLayer::~CommandLayer() = default;

Result<MapStore*> CommandLayer::store(Deadline deadline) {
  if (surroundings_->store.empty()) {
    return fail("55000", "the shards of this router are fixed by [[shard]] in its configuration",
                "Remove the [[shard]] entries to keep shards and maps in [map] store.");
  }
  if (!store_) {
    KG_TRY(store_, shardmap::open_store(surroundings_->store, surroundings_->directory,
                                        deadline.sooner(Deadline::in(kOpenPatience))));
  }
  return store_.get();
}

Result<CommandResult> CommandLayer::run(const Command& command, const Actor& actor, const CommandRun& run) {
  const Role needed = role_needed(command);
  if (actor.role < needed) {
    const Error denied{.sqlstate = std::string(sqlstate::kInsufficientPrivilege),
                       .message = "permission denied: " + std::string(tag_of(command)) + " needs the role " +
                                  std::string(name_of(needed)),
                       .hint = "\"" + actor.name + "\" has the role " + std::string(name_of(actor.role)) + "."};
    note(describe(command), actor, &denied);
    return fail(denied);
  }
  Result<CommandResult> done =
      only_looks(command)
          ? look(command, actor, run)
          : change(describe(command), actor, run, [&](MapStore& opened) -> Result<CommandResult> {
              if (!fills_a_store(command)) KG_CHECK(is_ours(opened, *surroundings_, run.deadline));
              return std::visit(Changer{opened, actor.face, run, *surroundings_}, command);
            });
  // It holds the shards' passwords.
  if (std::holds_alternative<Export>(command)) note(describe(command), actor, done ? nullptr : &done.error());
  if (!done) return fail(with_what_was_meant(std::move(done).error(), *surroundings_->map()));
  if (done->tag.empty()) done->tag = tag_of(command);
  return done;
}

Result<CommandResult> CommandLayer::look(const Command& command, const Actor& actor, const CommandRun& run) {
  if (const auto* c = std::get_if<Show>(&command)) {
    const Deadline soon = run.deadline.sooner(Deadline::in(kShowPatience));  // a store may hang
    return show(
        *c, actor.face, *surroundings_, [&] { return store(soon); }, soon);
  }
  if (const auto* c = std::get_if<Lookup>(&command)) return lookup(*c, actor.face, *surroundings_->map());
  KG_TRY(MapStore * opened, store(run.deadline));
  if (const auto* c = std::get_if<Check>(&command)) return check(*opened, *c, run.deadline);
  if (const auto* c = std::get_if<Resolve>(&command))
    return Changer{*opened, actor.face, run, *surroundings_}(*c);
  if (const auto* c = std::get_if<StartJob>(&command))
    return Changer{*opened, actor.face, run, *surroundings_}(*c);
  CommandResult result;
  KG_TRY(result.text, MapCommands(*opened).export_all(run.deadline));
  return result;
}

Result<CommandResult> CommandLayer::change(const std::string& what, const Actor& actor, const CommandRun& run,
                                           const Work& work) {
  KG_TRY(MapStore * opened, store(run.deadline));
  const Deadline auditing = run.deadline.sooner(Deadline::in(kAuditPatience));
  KG_TRY(const std::string entry, begin_audit(*opened, actor, surroundings_->router, what, auditing));
  std::optional<ExpectedEpoch> guarded;
  if (run.epoch) guarded.emplace(*opened, *run.epoch);
  Result<CommandResult> done = work(guarded ? static_cast<MapStore&>(*guarded) : *opened);
  end_audit(*opened, entry, actor, surroundings_->router, what, done ? nullptr : &done.error(),
            done ? done->epoch : 0, Deadline::in(kAuditPatience));
  if (done && done->epoch != 0) wait_for_routers(*opened, run.deadline, *done);
  return done;
}

// So that whoever changes something and then asks, here or at another router, finds it changed.
void CommandLayer::wait_for_routers(MapStore& store, Deadline deadline, CommandResult& result) const {
  const auto waited =
      shardmap::wait_until_taken(store, result.epoch, deadline.sooner(Deadline::in(kRoutersPatience)));
  if (!waited) result.notices.push_back("done, but " + waited.error().message);
}

void CommandLayer::note(const std::string& what, const Actor& actor, const Error* error) {
  const Deadline soon = Deadline::in(kAuditPatience);
  const auto opened = surroundings_->store.empty() ? Result<MapStore*>(nullptr) : store(soon);
  write_audit(opened ? *opened : nullptr, actor, surroundings_->router, what, error, soon);
}

Result<CommandResult> CommandLayer::record_table(const shardmap::Table& table, const std::string& what,
                                                 const Actor& actor, const CommandRun& run) {
  return change(what, actor, run, [&](MapStore& opened) -> Result<CommandResult> {
    KG_CHECK(is_ours(opened, *surroundings_, run.deadline));
    return made(MapCommands(opened).put_table(table, run.deadline));
  });
}

Result<CommandResult> CommandLayer::forget_table(const std::string& schema, const std::string& name,
                                                 const std::string& what, const Actor& actor,
                                                 const CommandRun& run) {
  return change(what, actor, run, [&](MapStore& opened) -> Result<CommandResult> {
    KG_CHECK(is_ours(opened, *surroundings_, run.deadline));
    return made(MapCommands(opened).drop_table(schema, name, run.deadline));
  });
}

}  // namespace kintsugi::admin
