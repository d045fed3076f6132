// Kintsugi's own statements.
#include <charconv>

#include "parser/tree_builder.h"

namespace kintsugi::parser {

StatementBody TreeBuilder::own(G::OwnStatementContext* c) {
  const std::size_t object = type(c->obj);
  if (c->job != nullptr || object == G::W_SHARDLET) return own_shardlet(c);
  if (c->ctl != nullptr) {
    auto* made = make<ControlJob>();
    made->resume = type(c->ctl) == G::W_RESUME;
    made->id = type(c->id->t) == G::SCONST ? string_of(c->id->t) : written(range(c->id->t));
    return made;
  }
  if (c->show != nullptr) {
    auto* made = make<ShowOwn>();
    switch (type(c->what)) {
      case G::W_MAPS: made->what = ShowOwn::What::kShardMaps; break;
      case G::W_SHARDLETS: made->what = ShowOwn::What::kShardlets; break;
      case G::K_TABLES: made->what = ShowOwn::What::kShardedTables; break;
      case G::W_JOBS: made->what = ShowOwn::What::kJobs; break;
      case G::W_JOB:
        made->what = ShowOwn::What::kJob;
        made->job = type(c->id->t) == G::SCONST ? string_of(c->id->t) : written(range(c->id->t));
        break;
      case G::W_ROUTERS: made->what = ShowOwn::What::kRouters; break;
      case G::W_POOLS: made->what = ShowOwn::What::kPools; break;
      case G::W_STATS: made->what = ShowOwn::What::kStats; break;
      default: break;
    }
    made->map = own_name(c->m);
    return made;
  }
  if (c->dr != nullptr) {
    auto* made = make<DropOwn>();
    made->kind = object == G::W_MAP ? DropOwn::Kind::kShardMap : DropOwn::Kind::kShard;
    made->name = own_name(c->n);
    made->if_exists = c->ie != nullptr;
    return made;
  }
  if (c->al != nullptr) {
    auto* made = make<AlterShard>();
    made->name = own_name(c->n);
    made->dsn = string_of(c->str);
    return made;
  }
  if (object == G::W_MAP) {
    auto* made = make<CreateShardMap>();
    made->name = own_name(c->n);
    made->kind = type(c->kind) == G::K_RANGE  ? MapKind::kRange
                 : type(c->kind) == G::W_LIST ? MapKind::kList
                                              : MapKind::kHash;
    made->key = map(c->types, [this](auto* t) { return type_name(t); });
    if (c->num != nullptr) {
      const std::string_view digits = written(range(c->num));
      std::from_chars(digits.data(), digits.data() + digits.size(), made->shardlets);
      if (made->shardlets == 0) refuse(c->num, "a map is made with one shardlet or more");
    }
    made->shards = own_names(c->shards);
    made->if_not_exists = c->ine != nullptr;
    return made;
  }
  auto* made = make<CreateShard>();
  made->name = own_name(c->n);
  made->dsn = string_of(c->str);
  made->if_not_exists = c->ine != nullptr;
  return made;
}

StatementBody TreeBuilder::own_shardlet(G::OwnStatementContext* c) {
  if (c->job == nullptr && c->dr != nullptr) {
    auto* made = make<DropOwn>();
    made->kind = DropOwn::Kind::kShardlet;
    made->name = own_name(c->n);
    made->if_exists = c->ie != nullptr;
    return made;
  }
  if (c->job == nullptr && c->al != nullptr) {
    using Action = AlterShardlet::Action;
    auto* made = make<AlterShardlet>();
    made->name = own_name(c->n);
    made->new_name = own_name(c->nn);
    made->action = c->ren != nullptr             ? Action::kRename
                   : type(c->st) == G::W_OFFLINE ? Action::kOffline
                   : type(c->st) == G::W_ONLINE  ? Action::kOnline
                                                 : Action::kReadOnly;
    return made;
  }
  if (c->job == nullptr) {
    auto* made = make<CreateShardlet>();
    made->name = own_name(c->n);
    made->map = own_name(c->m);
    made->low = key_tuple(c->low);
    made->high = key_tuple(c->high);
    made->values = map(c->vals, [this](auto* v) { return key_value(v); });
    made->shard = own_name(c->sh);
    made->if_not_exists = c->ine != nullptr;
    return made;
  }
  const List<Option> options = own_options(c->wi);
  switch (type(c->job)) {
    case G::W_SPLIT: {
      auto* made = make<SplitShardlet>();
      made->name = own_name(c->n);
      if (c->low != nullptr) made->at = key_tuple(c->low);
      made->into = own_names(c->into);
      if (c->into != nullptr && made->into.size() != 2)
        refuse(c->into->start, "INTO names the two shardlets of a split");
      made->move = own_name(c->mv);
      made->to_shard = own_name(c->sh);
      made->options = options;
      return made;
    }
    case G::K_MERGE: {
      auto* made = make<MergeShardlets>();
      made->left = own_name(c->n);
      made->right = own_name(c->n2);
      made->into = own_name(c->nn);
      made->on_shard = own_name(c->sh);
      made->options = options;
      return made;
    }
    case G::K_MOVE: {
      auto* made = make<MoveShardlet>();
      made->name = own_name(c->n);
      made->to_shard = own_name(c->sh);
      made->options = options;
      return made;
    }
    case G::W_REBALANCE: {
      auto* made = make<Rebalance>();
      made->map = own_name(c->m);
      made->options = options;
      return made;
    }
    default: {
      auto* made = make<DrainShard>();
      made->name = own_name(c->n);
      made->options = options;
      return made;
    }
  }
}

List<Name> TreeBuilder::own_names(G::OwnNameListContext* c) {
  if (c == nullptr) return {};
  return map(c->n, [this](auto* n) { return own_name(n); });
}

List<KeyValue> TreeBuilder::key_tuple(G::KeyTupleContext* c) {
  if (c == nullptr) return {};
  return map(c->v, [this](auto* v) { return key_value(v); });
}

KeyValue TreeBuilder::key_value(G::KeyValueContext* c) {
  using Kind = KeyValue::Kind;
  KeyValue made;
  if (c->str != nullptr) {
    made.text = string_of(c->str);
  } else if (c->num != nullptr) {
    made.kind = Kind::kNumber;
    const std::string_view digits = written(range(c->num));
    made.text = type(c->sign) == G::MINUS ? keep("-" + std::string(digits)) : digits;
  } else if (c->w == nullptr) {
    made.kind = Kind::kTuple;
    made.tuple = map(c->v, [this](auto* v) { return key_value(v); });
  } else {
    switch (type(c->w)) {
      case G::K_MINVALUE: made.kind = Kind::kMinValue; break;
      case G::K_MAXVALUE: made.kind = Kind::kMaxValue; break;
      case G::K_NULL: made.kind = Kind::kNull; break;
      default:
        made.kind = Kind::kBoolean;
        made.text = type(c->w) == G::K_TRUE ? "true" : "false";
        break;
    }
  }
  return made;
}

List<Option> TreeBuilder::own_options(G::OwnOptionsContext* c) {
  if (c == nullptr) return {};
  return map(c->o, [this](auto* o) {
    Option made;
    made.name = own_name(o->n).text;
    if (o->v != nullptr)
      made.value = value_of(o->v);
    else
      made.value = o->w != nullptr ? own_name(o->w).text : "true";
    made.has_value = true;
    made.range = range(o);
    return made;
  });
}

}  // namespace kintsugi::parser
