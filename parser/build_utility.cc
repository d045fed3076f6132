// Transactions, cursors, settings, COPY, EXPLAIN and maintenance.
#include <charconv>

#include "parser/tree_builder.h"

namespace kintsugi::parser {

StatementBody TreeBuilder::utility(G::StatementContext* c) {
  if (c->tra != nullptr) return transaction(c->tra);
  if (c->setS != nullptr) return set(c->setS);
  if (c->decl != nullptr) return declare(c->decl);
  if (c->fet != nullptr) return fetch(c->fet);
  if (c->cop != nullptr) return copy(c->cop);
  if (c->expl != nullptr) return explain(c->expl);
  if (c->clo != nullptr) {
    auto* made = make<CloseCursor>();
    made->name = name(c->clo->n);
    made->all = c->clo->all != nullptr;
    return made;
  }
  if (c->prep != nullptr) {
    auto* made = make<Prepare>();
    made->name = name(c->prep->n);
    made->types = map(c->prep->types, [this](auto* t) { return type_name(t); });
    made->body = preparable(c->prep->b);
    return made;
  }
  if (c->exe != nullptr) {
    auto* made = make<Execute>();
    made->name = name(c->exe->n);
    made->args = exprs(c->exe->items);
    return made;
  }
  if (c->dea != nullptr) {
    auto* made = make<Deallocate>();
    made->name = name(c->dea->n);
    made->all = c->dea->all != nullptr;
    return made;
  }
  if (c->res != nullptr) {
    auto* made = make<Reset>();
    made->name = setting(c->res->r);
    made->all = c->res->r->all != nullptr;
    return made;
  }
  if (c->sho != nullptr) {
    auto* made = make<Show>();
    made->name = setting(c->sho);
    made->all = c->sho->all != nullptr;
    return made;
  }
  if (c->disc != nullptr) {
    auto* made = make<Discard>();
    switch (type(c->disc->w)) {
      case G::K_PLANS: made->kind = Discard::Kind::kPlans; break;
      case G::K_SEQUENCES: made->kind = Discard::Kind::kSequences; break;
      case G::K_TEMP:
      case G::K_TEMPORARY: made->kind = Discard::Kind::kTemp; break;
      default: break;
    }
    return made;
  }
  if (c->loc != nullptr) {
    auto* made = make<LockTable>();
    made->tables = map(c->loc->rels, [this](auto* r) { return relation_ref(r); });
    if (c->loc->md != nullptr) made->mode = lower(range(c->loc->md));
    made->no_wait = c->loc->wait != nullptr;
    return made;
  }
  if (c->noti != nullptr) {
    auto* made = make<Notify>();
    made->kind = type(c->noti->w) == G::K_LISTEN     ? Notify::Kind::kListen
                 : type(c->noti->w) == G::K_UNLISTEN ? Notify::Kind::kUnlisten
                                                     : Notify::Kind::kNotify;
    made->channel = name(c->noti->n);
    made->all = c->noti->all != nullptr;
    if (c->noti->str != nullptr) made->payload = string_of(c->noti->str);
    return made;
  }
  if (c->vac != nullptr) {
    auto* made = make<Vacuum>();
    made->analyze_only = c->vac->an != nullptr;
    made->tables = map(c->vac->rels, [this](auto* r) { return relation_ref(r->rel); });
    return made;
  }
  if (c->cal != nullptr) {
    auto* made = make<Call>();
    made->call = call(qualified(c->cal->call->fn != nullptr ? name(c->cal->call->fn) : name(c->cal->call->n),
                                c->cal->call->attrs),
                      c->cal->call->args, nullptr, range(c->cal->call));
    return made;
  }
  if (c->clu != nullptr) return head("cluster", any_name(c->clu->rel));
  if (c->rei != nullptr) return head("reindex", any_name(c->rei->rel));
  if (c->refr != nullptr) return head("refresh materialized view", any_name(c->refr->rel));
  if (c->doS != nullptr) return head("do");
  if (c->chk != nullptr) return head("checkpoint");
  if (c->loa != nullptr) return head("load");
  if (c->head != nullptr) return known_by_head(c->head);
  return {};
}

const Utility* TreeBuilder::head(std::string_view head, QualifiedName relation) {
  auto* made = make<Utility>();
  while (!head.empty() && head.back() == ' ') head.remove_suffix(1);
  made->head = head;
  made->relation = relation;
  return made;
}

const Transaction* TreeBuilder::transaction(G::TransactionStatementContext* c) {
  using Kind = Transaction::Kind;
  auto* made = make<Transaction>();
  if (c->n != nullptr) made->savepoint = name(c->n);
  if (c->id != nullptr) made->gid = string_of(c->id);
  if (c->ch != nullptr) made->chain = c->ch->no == nullptr;
  made->modes = modes(c->m);
  switch (type(c->w)) {
    case G::K_ABORT: made->kind = Kind::kRollback; break;
    case G::K_ROLLBACK:
      made->kind = c->n != nullptr      ? Kind::kRollbackTo
                   : c->prep != nullptr ? Kind::kRollbackPrepared
                                        : Kind::kRollback;
      break;
    case G::K_COMMIT:
    case G::K_END: made->kind = c->prep != nullptr ? Kind::kCommitPrepared : Kind::kCommit; break;
    case G::K_START: made->start = true; break;
    case G::K_SAVEPOINT: made->kind = Kind::kSavepoint; break;
    case G::K_RELEASE: made->kind = Kind::kRelease; break;
    case G::K_PREPARE: made->kind = Kind::kPrepare; break;
    default: break;
  }
  return made;
}

TransactionModes TreeBuilder::modes(G::TransactionModesContext* c) {
  TransactionModes made;
  if (c == nullptr) return made;
  for (auto* m : c->m) {
    if (m->iso != nullptr) {
      switch (type(m->iso->t)) {
        case G::K_UNCOMMITTED: made.isolation = Isolation::kReadUncommitted; break;
        case G::K_COMMITTED: made.isolation = Isolation::kReadCommitted; break;
        case G::K_REPEATABLE: made.isolation = Isolation::kRepeatableRead; break;
        default: made.isolation = Isolation::kSerializable; break;
      }
    } else if (m->def != nullptr) {
      made.deferrable = m->no == nullptr;
    } else {
      made.read_only = m->ro != nullptr;
    }
  }
  return made;
}

const DeclareCursor* TreeBuilder::declare(G::DeclareCursorContext* c) {
  auto* made = make<DeclareCursor>();
  made->name = name(c->n);
  made->query = query(c->q);
  made->query_range = range(c->q);
  made->hold = type(c->hold) == G::K_WITH;
  for (auto* o : c->o) {
    made->scroll |= o->sc != nullptr && o->no == nullptr;
    made->binary |= o->bin != nullptr;
  }
  return made;
}

const Fetch* TreeBuilder::fetch(G::FetchStatementContext* c) {
  using Direction = Fetch::Direction;
  auto* made = make<Fetch>();
  made->move = type(c->w) == G::K_MOVE;
  auto* d = c->d;
  made->cursor = name(d->n);
  made->all = d->all != nullptr;
  if (d->num != nullptr) {
    const std::string_view digits = written(range(d->num->num));
    std::from_chars(digits.data(), digits.data() + digits.size(), made->count);
    if (type(d->num->sign) == G::MINUS) made->count = -made->count;
  }
  switch (type(d->dir)) {
    case G::K_PRIOR:
    case G::K_BACKWARD: made->direction = Direction::kBackward; break;
    case G::K_FIRST: made->direction = Direction::kAbsolute; break;
    case G::K_LAST:
      made->direction = Direction::kAbsolute;
      made->count = -1;
      break;
    case G::K_ABSOLUTE: made->direction = Direction::kAbsolute; break;
    case G::K_RELATIVE: made->direction = Direction::kRelative; break;
    default: break;
  }
  return made;
}

std::string_view TreeBuilder::dotted(const std::vector<G::ColIdContext*>& parts) {
  std::string joined;
  for (auto* part : parts) joined.append(joined.empty() ? "" : ".").append(name(part).text);
  return keep(joined);
}

template <class Context>
std::string_view TreeBuilder::setting(const Context* c) {
  switch (type(c->w)) {
    case G::K_TIME: return "timezone";
    case G::K_TRANSACTION: return "transaction_isolation";
    case G::K_SESSION: return "session_authorization";
    default: return c->n == nullptr ? std::string_view{} : dotted(c->n->n);
  }
}

const Set* TreeBuilder::set(G::SetStatementContext* c) {
  auto* made = make<Set>();
  made->local = type(c->scope) == G::K_LOCAL;
  if (c->r == nullptr) {
    made->form = Set::Form::kConstraints;
    return made;
  }
  set_rest(c->r, *made);
  return made;
}

void TreeBuilder::set_rest(G::SetRestContext* c, Set& out) {
  const auto value = [this](G::SettingValueContext* v) {
    SettingValue made;
    if (v->str != nullptr) {
      made.text = string_of(v->str);
    } else if (v->num != nullptr) {
      made.kind = SettingValue::Kind::kNumber;
      made.text = lower(v->sign != nullptr ? range(v->sign, v->num) : range(v->num));
    } else {
      made.kind = SettingValue::Kind::kWord;
      made.text = v->nw != nullptr ? name(v->nw).text : name_of(v->word).text;
    }
    return made;
  };
  const auto one_string = [this](const antlr4::Token* token) {
    return list(std::vector<SettingValue>{{SettingValue::Kind::kString, string_of(token)}});
  };
  out.modes = modes(c->m);
  switch (type(c->w)) {
    case G::K_TRANSACTION:
      out.form = c->snap != nullptr ? Set::Form::kSnapshot : Set::Form::kTransaction;
      if (c->str != nullptr) out.values = one_string(c->str);
      return;
    case G::K_SESSION:
      if (c->m != nullptr) {
        out.form = Set::Form::kCharacteristics;
        return;
      }
      out.name = "session_authorization";
      break;
    case G::K_TIME:
      out.name = "timezone";
      out.value_range = range(c->z);
      if (c->z->def != nullptr)
        out.form = Set::Form::kDefault;
      else if (c->z->str != nullptr && c->z->iv == nullptr)
        out.values = one_string(c->z->str);
      else
        out.values = list(std::vector<SettingValue>{{SettingValue::Kind::kWord, lower(out.value_range)}});
      return;
    case G::K_CATALOG: out.name = "catalog"; break;
    case G::K_SCHEMA: out.name = "search_path"; break;
    case G::K_NAMES: out.name = "client_encoding"; break;
    case G::K_ROLE: out.name = "role"; break;
    case G::K_XML: out.name = "xmloption"; return;
    default: out.name = dotted(c->n->n); break;
  }
  if (c->cur != nullptr) {
    out.form = Set::Form::kCurrent;
  } else if (c->str != nullptr) {
    out.values = one_string(c->str);
    out.value_range = range(c->str);
  } else if (c->v != nullptr) {
    out.values = list(std::vector<SettingValue>{value(c->v)});
    out.value_range = range(c->v);
  } else if (!c->vals.empty()) {
    out.values = map(c->vals, value);
    out.value_range = between(range(c->vals.front()), range(c->vals.back()));
  } else {
    out.form = Set::Form::kDefault;
  }
}

std::string_view TreeBuilder::value_of(G::CopyValueContext* c) {
  if (c->str != nullptr) return string_of(c->str);
  if (c->nw != nullptr) return name(c->nw).text;
  if (c->word != nullptr) return name_of(c->word).text;
  return lower(c->sign != nullptr ? range(c->sign, c->num) : range(c->num));
}

Option TreeBuilder::copy_option(G::CopyOptionContext* c) {
  Option made;
  made.name = name(c->n).text;
  made.range = range(c);
  made.star = c->star != nullptr;
  made.has_value = c->v != nullptr;
  if (c->v != nullptr) made.value = value_of(c->v);
  made.list = map(c->items, [this](auto* item) { return value_of(item->v); });
  return made;
}

Option TreeBuilder::old_copy_option(G::CopyOldOptionContext* c) {
  Option made;
  made.range = range(c);
  made.name = lower(range(c->n));
  if (type(c->n) == G::K_BINARY || type(c->n) == G::K_CSV) {
    made.value = made.name;
    made.name = "format";
    made.has_value = true;
  }
  if (c->str != nullptr) {
    made.value = string_of(c->str);
    made.has_value = true;
  }
  if (type(c->n) == G::K_FORCE) {
    made.name = c->quote != nullptr ? "force_quote" : c->no != nullptr ? "force_not_null" : "force_null";
    made.list = map(c->cols == nullptr ? std::vector<G::ColIdContext*>{} : c->cols->n,
                    [this](auto* n) { return name(n).text; });
    made.star = c->star != nullptr;
  }
  return made;
}

const Copy* TreeBuilder::copy(G::CopyStatementContext* c) {
  auto* made = make<Copy>();
  if (c->rel != nullptr) {
    made->table.name = relation(c->rel);
    made->table.range = range(c->rel);
    made->columns = names(c->cols);
  } else {
    auto* inner = make<Preparable>();
    if (c->b != nullptr) {
      *inner = preparable(c->b);
    } else {
      inner->query = query(c->ws);
      inner->range = range(c->ws);
    }
    made->query = inner;
  }
  made->from = type(c->dir) == G::K_FROM;
  made->program = c->prog != nullptr;
  made->standard_stream = c->f->w != nullptr;
  if (made->program && made->standard_stream) refuse(nullptr, "STDIN/STDOUT not allowed with PROGRAM");
  if (c->f->str != nullptr) made->file = string_of(c->f->str);
  std::vector<Option> options;
  if (c->bin != nullptr) options.push_back({"format", "binary", true, {}, false, range(c->bin)});
  if (c->delim != nullptr)
    options.push_back({"delimiter", string_of(c->delim), true, {}, false, range(c->delim)});
  for (auto* o : c->o->old) options.push_back(old_copy_option(o));
  for (auto* o : c->o->o) options.push_back(copy_option(o));
  made->options = list(options);
  if (c->wh != nullptr) {
    if (!made->from) refuse(c->wh->start, "WHERE clause not allowed with COPY TO");
    made->where = expr(c->wh->e);
  }
  return made;
}

const Explain* TreeBuilder::explain(G::ExplainStatementContext* c) {
  auto* made = make<Explain>();
  made->analyze = c->an != nullptr;
  made->verbose = c->verb != nullptr;
  if (c->o != nullptr) {
    made->options = map(c->o->o, [this](auto* o) {
      Option option;
      option.range = range(o);
      option.name = o->n != nullptr ? name(o->n).text : std::string_view("analyze");
      option.has_value = o->v != nullptr;
      if (o->v != nullptr) option.value = value_of(o->v);
      return option;
    });
    for (const Option& o : made->options) {
      const bool on = !o.has_value || o.value == "true" || o.value == "on" || o.value == "1";
      if (o.name == "analyze") made->analyze = on;
      if (o.name == "verbose") made->verbose = on;
      if (o.name == "route") made->route = on;
    }
  }
  made->body_range = range(c->s);
  if (c->s->b != nullptr) {
    made->body = preparable(c->s->b);
  } else {
    made->other = true;
    if (c->s->dc != nullptr) declare(c->s->dc);
    if (c->s->cta != nullptr) create_table_as(c->s->cta);
    if (c->s->cv != nullptr) create_view(c->s->cv);
    if (c->s->x != nullptr) exprs(c->s->x->items);
  }
  return made;
}

}  // namespace kintsugi::parser
