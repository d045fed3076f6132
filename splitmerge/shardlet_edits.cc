#include "splitmerge/shardlet_edits.h"

#include <algorithm>
#include <set>

#include "shardmap/key_encoding.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::Bound;
using shardmap::BoundColumn;
using shardmap::MapEdit;
using shardmap::MapKind;
using shardmap::Mapping;
using shardmap::Shard;
using shardmap::Shardlet;
using shardmap::ShardletState;
using shardmap::ShardMap;
using shardmap::ShardState;
namespace edit = shardmap::edit;

std::string quoted(const std::string& name) {
  return "\"" + name + "\"";
}

tl::unexpected<Error> missing(const char* what, const std::string& name) {
  return fail(sqlstate::kUndefinedObject, std::string(what) + " " + quoted(name) + " does not exist");
}

Result<Shardlet> need_shardlet(const ShardMap& map, const std::string& name) {
  auto shardlet = map.shardlet(name);
  if (!shardlet) return missing("shardlet", name);
  return *std::move(shardlet);
}

Status need_receiver(const ShardMap& map, const std::string& name) {
  const Shard* shard = map.shard_named(name);
  if (shard == nullptr) return missing("shard", name);
  if (shard->state != ShardState::kOnline) {
    return fail("55000",
                "shard " + quoted(name) + " is " + std::string(name_of(shard->state)) +
                    " and cannot be given shardlets",
                shard->state == ShardState::kPreparing
                    ? "A provision job makes it ready."
                    : "kintsugi shard set " + name + " --state online opens it again.");
  }
  return {};
}

std::string free_name(const ShardMap& map, const std::string& wanted, const std::string& but = "") {
  std::string name = wanted;
  for (int n = 2; name == but || map.shardlet(name); ++n) name = wanted + std::to_string(n);
  return name;
}

// In the order of their keys.
std::vector<Shardlet> sorted(std::vector<Shardlet> shardlets) {
  const auto first = [](const Shardlet& s) { return s.values.empty() ? s.low : s.values.front(); };
  std::sort(shardlets.begin(), shardlets.end(),
            [&](const Shardlet& a, const Shardlet& b) { return first(a) < first(b); });
  return shardlets;
}

Result<JobRequest> settle_split(const ShardMap& map, JobRequest request) {
  const std::string& name = request.shardlets[0];
  KG_TRY(const Shardlet shardlet, need_shardlet(map, name));
  if (request.into.empty()) {
    request.into.push_back(free_name(map, name + "_l"));
    request.into.push_back(free_name(map, name + "_r", request.into[0]));
    if (request.move == "l" || request.move == "left") request.move = request.into[0];
    if (request.move == "r" || request.move == "right") request.move = request.into[1];
  }
  if (request.into.size() != 2 || request.into[0] == request.into[1]) {
    return fail(sqlstate::kInvalidParameter, "a split makes two shardlets of different names");
  }
  for (const std::string& part : request.into) {
    if (part != name && map.shardlet(part))
      return fail(sqlstate::kDuplicateObject, "shardlet " + quoted(part) + " already exists");
  }
  if (!request.to.empty()) {
    if (request.move.empty()) request.move = request.into[1];
    if (request.move != request.into[0] && request.move != request.into[1]) {
      return fail(sqlstate::kInvalidParameter,
                  "shardlet " + quoted(request.move) + " is none of the two parts");
    }
    KG_CHECK(need_receiver(map, request.to));
    if (map.shard(shardlet.shard)->name == request.to) {
      return fail("55000", "shardlet " + quoted(name) + " is on shard " + quoted(request.to) + " already",
                  "Without a target the split is done in place.");
    }
  } else if (!request.move.empty()) {
    return fail(sqlstate::kInvalidParameter, "a part that moves needs a shard to move to");
  }
  if (request.at) {
    const Mapping& mapping = *map.mapping(shardlet.map);
    if (request.at->size() > mapping.bound_types().size() || request.at->empty()) {
      return fail(sqlstate::kInvalidParameter,
                  "the key of map " + quoted(shardlet.map) + " is (" + list_of(mapping.bound_types()) + ")");
    }
    request.at = whole_bound(mapping, *request.at);
    KG_TRY(const MapEdit edit, split_edit(map, name, *request.at, request.into[0], request.into[1]));
    KG_CHECK(apply(map, edit));
  }
  return request;
}

Result<JobRequest> settle_merge(const ShardMap& map, JobRequest request) {
  if (std::set<std::string>(request.shardlets.begin(), request.shardlets.end()).size() < 2)
    return fail(sqlstate::kInvalidParameter, "a merge is of two shardlets or more");
  std::vector<Shardlet> parts;
  for (const std::string& name : request.shardlets) {
    KG_TRY(parts.emplace_back(), need_shardlet(map, name));
    if (parts.back().map != parts.front().map) {
      return fail("55000", "shardlets " + quoted(parts.front().name) + " and " + quoted(name) +
                               " are of different maps");
    }
  }
  if (request.to.empty()) request.to = map.shard(parts[0].shard)->name;
  KG_CHECK(need_receiver(map, request.to));
  if (request.into.empty()) request.into.push_back(request.shardlets[0]);
  // As it will be when all of them are there.
  MapEdit moves;
  for (const Shardlet& part : parts) {
    moves.operations.emplace_back(edit::AlterShardlet{part.name, {}, request.to, {}});
  }
  KG_TRY(const shardmap::MapPtr moved, apply(map, moves));
  KG_TRY(const MapEdit merge, merge_edit(*moved, request.shardlets, request.into[0]));
  KG_CHECK(apply(*moved, merge));
  return request;
}

}  // namespace

Bound whole_bound(const Mapping& mapping, Bound at) {
  while (at.size() < mapping.bound_types().size()) at.push_back(BoundColumn::min());
  return at;
}

Result<MapEdit> split_edit(const ShardMap& map, const std::string& name, const Bound& at,
                           const std::string& left, const std::string& right) {
  KG_TRY(const Shardlet shardlet, need_shardlet(map, name));
  const Mapping& mapping = *map.mapping(shardlet.map);
  KG_TRY(const edit::CreateShardlet whole, creation_of(map, name));
  KG_TRY(const std::string key, encode_bound(mapping.bound_types(), at));
  edit::CreateShardlet first = whole;
  edit::CreateShardlet second = whole;
  first.name = left;
  second.name = right;
  if (mapping.kind() == MapKind::kList) {
    const auto from =
        std::lower_bound(shardlet.values.begin(), shardlet.values.end(), key) - shardlet.values.begin();
    first.values.assign(whole.values.begin(), whole.values.begin() + from);
    second.values.assign(whole.values.begin() + from, whole.values.end());
  } else {
    first.high = at;
    second.low = at;
  }
  const bool empty = mapping.kind() == MapKind::kList ? first.values.empty() || second.values.empty()
                                                      : key <= shardlet.low || key >= shardlet.high;
  if (empty) {
    return fail("42P17", "shardlet " + quoted(name) + " cannot be split at " +
                             describe_key(mapping.bound_types(), key) + ": one part would have no keys");
  }
  return MapEdit{edit::DropShardlet{name}, first, second};
}

Result<MapEdit> merge_edit(const ShardMap& map, const std::vector<std::string>& names,
                           const std::string& into) {
  std::vector<Shardlet> parts;
  for (const std::string& name : names) {
    KG_TRY(parts.emplace_back(), need_shardlet(map, name));
  }
  parts = sorted(std::move(parts));
  KG_TRY(edit::CreateShardlet whole, creation_of(map, parts.front().name));
  MapEdit merge;
  merge.operations.emplace_back(edit::DropShardlet{parts.front().name});
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Shardlet& before = parts[i - 1];
    const Shardlet& part = parts[i];
    const std::string both = "shardlets " + quoted(before.name) + " and " + quoted(part.name);
    if (part.map != before.map) return fail("55000", both + " are of different maps");
    if (part.shard != before.shard) return fail("55000", both + " are on different shards");
    if (part.state != before.state) return fail("55000", both + " are in different states");
    if (part.values.empty() && before.high != part.low) return fail("55000", both + " are not neighbours");
    KG_TRY(edit::CreateShardlet creation, creation_of(map, part.name));
    whole.high = creation.high;
    whole.values.insert(whole.values.end(), creation.values.begin(), creation.values.end());
    merge.operations.emplace_back(edit::DropShardlet{part.name});
  }
  whole.name = into;
  merge.operations.emplace_back(whole);
  return merge;
}

Result<JobRequest> settle(const ShardMap& map, JobRequest request, std::string& map_name) {
  map_name.clear();
  for (const std::string& name : request.shardlets) {
    KG_TRY(const Shardlet shardlet, need_shardlet(map, name));
    if (shardlet.state == ShardletState::kHeld)
      return fail(sqlstate::kObjectInUse, "another job works on shardlet " + quoted(name));
    map_name = shardlet.map;
  }
  const std::size_t wanted = request.type == JobType::kMove || request.type == JobType::kSplit ? 1 : 0;
  if (wanted > 0 && request.shardlets.size() != wanted)
    return fail(sqlstate::kInvalidParameter, "a " + std::string(name_of(request.type)) + " is of one shardlet");
  switch (request.type) {
    case JobType::kMove: {
      KG_CHECK(need_receiver(map, request.to));
      const auto shardlet = map.shardlet(request.shardlets[0]);
      if (map.shard(shardlet->shard)->name == request.to) {
        return fail("55000",
                    "shardlet " + quoted(shardlet->name) + " is on shard " + quoted(request.to) + " already");
      }
      return request;
    }
    case JobType::kSplit: return settle_split(map, std::move(request));
    case JobType::kMerge: return settle_merge(map, std::move(request));
    case JobType::kDrain:
      if (map.shard_named(request.shard) == nullptr) return missing("shard", request.shard);
      return request;
    case JobType::kProvision: {
      const Shard* shard = map.shard_named(request.shard);
      if (shard == nullptr) return missing("shard", request.shard);
      if (shard->state != ShardState::kPreparing) {
        return fail("55000", "shard " + quoted(request.shard) + " is " + std::string(name_of(shard->state)) +
                                 "; only one that is being prepared is provisioned");
      }
      return request;
    }
    case JobType::kRebalance:
      if (!request.map.empty() && map.mapping(request.map) == nullptr) return missing("shard map", request.map);
      map_name = request.map;
      return request;
  }
  return request;
}

}  // namespace kintsugi::splitmerge
