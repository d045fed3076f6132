// CREATE, ALTER, DROP and their neighbours.
#include <charconv>

#include "parser/tree_builder.h"

namespace kintsugi::parser {

StatementBody TreeBuilder::definition(G::StatementContext* c) {
  if (c->ct != nullptr) return create_table(c->ct);
  if (c->cta != nullptr) return create_table_as(c->cta);
  if (c->alt != nullptr) return alter_table(c->alt);
  if (c->cv != nullptr) return create_view(c->cv);
  if (c->ctyp != nullptr) return create_type(c->ctyp);
  if (c->cf != nullptr) return create_function(c->cf);
  if (c->dro != nullptr) return drop(c->dro);
  if (c->gra != nullptr) return grant(c->gra);
  if (c->com != nullptr) return comment(c->com);
  if (c->ci != nullptr) {
    auto* made = make<CreateIndex>();
    made->name = name(c->ci->n);
    made->table = relation_ref(c->ci->rel);
    made->unique = c->ci->uniq != nullptr;
    made->concurrently = c->ci->conc != nullptr;
    made->if_not_exists = c->ci->ine != nullptr;
    made->method = c->ci->am == nullptr ? std::string_view("btree") : name(c->ci->am).text;
    made->elements = map(c->ci->p, [this](auto* p) { return index_element(p); });
    if (c->ci->inc != nullptr) made->include = map(c->ci->inc->c, [this](auto* p) { return index_element(p); });
    if (c->ci->wh != nullptr) made->where = expr(c->ci->wh->e);
    return made;
  }
  if (c->cs != nullptr) {
    auto* made = make<CreateSequence>();
    made->name = relation(c->cs->rel);
    made->if_not_exists = c->cs->ine != nullptr;
    made->temporary = c->cs->per != nullptr;
    return made;
  }
  if (c->csch != nullptr) {
    auto* made = make<CreateSchema>();
    made->name = name(c->csch->n);
    made->if_not_exists = c->csch->ine != nullptr;
    for (auto* element : c->csch->el) {
      if (element->ct != nullptr) create_table(element->ct);
      if (element->cv != nullptr) create_view(element->cv);
    }
    return made;
  }
  if (c->tru != nullptr) {
    auto* made = make<Truncate>();
    made->tables = map(c->tru->rels, [this](auto* r) { return relation_ref(r); });
    made->restart_identity = type(c->tru->seq) == G::K_RESTART;
    made->cascade = type(c->tru->beh) == G::K_CASCADE;
    return made;
  }
  return {};
}

const CreateTable* TreeBuilder::create_table(G::CreateTableContext* c) {
  auto* made = make<CreateTable>();
  made->name = relation(c->rel);
  made->if_not_exists = c->ine != nullptr;
  made->unlogged = c->per != nullptr && type(c->per->t) == G::K_UNLOGGED;
  made->temporary = c->per != nullptr && !made->unlogged;
  std::vector<ColumnDefinition> columns;
  std::vector<Constraint> constraints;
  std::vector<QualifiedName> like;
  for (auto* element : c->el) {
    if (element->c != nullptr) columns.push_back(column(element->c));
    if (element->k != nullptr) constraints.push_back(table_constraint(element->k));
    if (element->lk != nullptr) like.push_back(relation(element->lk->rel));
  }
  for (auto* element : c->tel) {
    if (element->k != nullptr) constraints.push_back(table_constraint(element->k));
    if (element->c == nullptr) continue;
    ColumnDefinition one;
    one.name = name(element->c->n);
    one.range = range(element->c);
    std::vector<Constraint> own_constraints;
    for (auto* q : element->c->q)
      if (Constraint k; constraint(q, k, one.collation)) own_constraints.push_back(k);
    one.constraints = list(own_constraints);
    columns.push_back(one);
  }
  made->columns = list(columns);
  made->constraints = list(constraints);
  made->like = list(like);
  if (c->inh != nullptr) made->inherits = map(c->inh->n, [this](auto* n) { return relation(n); });
  if (c->par != nullptr) made->partition_of = relation(c->par);
  if (c->bound != nullptr) check_bound(c->bound);
  if (c->ofType != nullptr) made->of_type = any_name(c->ofType);
  if (c->ps != nullptr) {
    made->partition_by = name(c->ps->kind).text;
    made->partition_key = map(c->ps->p, [this](auto* p) {
      PartitionElement element;
      if (p->n != nullptr) element.column = name(p->n);
      if (p->wf != nullptr) element.expr = windowless(p->wf);
      if (p->e != nullptr) element.expr = expr(p->e);
      return element;
    });
  }
  made->without_placement = range(c);
  if (c->place != nullptr) {
    made->placement = placement(c->place);
    std::uint32_t end = made->placement->range.begin;
    while (end > 0 && (text_[end - 1] == ' ' || text_[end - 1] == '\n' || text_[end - 1] == '\t' ||
                       text_[end - 1] == '\r'))
      --end;
    made->without_placement.end = end;
  }
  return made;
}

// The words of FOR VALUES WITH (modulus 4, remainder 1) are no keywords.
void TreeBuilder::check_bound(G::PartitionBoundContext* c) {
  bool modulus = false;
  bool remainder = false;
  for (auto* h : c->h) {
    const std::string_view word = name(h->n).text;
    if (word != "modulus" && word != "remainder")
      refuse(h->start, "unrecognized hash partition bound specification \"" + std::string(word) + "\"");
    bool& seen = word == "modulus" ? modulus : remainder;
    if (seen)
      refuse(h->start, std::string(word) + " for hash partition provided more than once", {},
             sqlstate::kDuplicateObject);
    seen = true;
  }
  if (c->h.empty()) return;
  if (!modulus) refuse(nullptr, "modulus for hash partition must be specified");
  if (!remainder) refuse(nullptr, "remainder for hash partition must be specified");
}

const Placement* TreeBuilder::placement(G::PlacementContext* c) {
  auto* made = make<Placement>();
  made->replicated = c->rep != nullptr;
  made->map = own_name(c->m);
  made->columns = names(c->cols);
  made->range = range(c);
  return made;
}

ColumnDefinition TreeBuilder::column(G::ColumnDefinitionContext* c) {
  ColumnDefinition made;
  made.name = name(c->n);
  made.type = type_name(c->ty);
  made.range = range(c);
  std::vector<Constraint> constraints;
  for (auto* q : c->q)
    if (Constraint k; constraint(q, k, made.collation)) constraints.push_back(k);
  made.constraints = list(constraints);
  return made;
}

// False for what is not a constraint: COLLATE and DEFERRABLE.
bool TreeBuilder::constraint(G::ColumnConstraintContext* c, Constraint& out, QualifiedName& collation) {
  using Kind = Constraint::Kind;
  if (c->coll != nullptr) {
    collation = any_name(c->coll);
    return false;
  }
  if (c->at != nullptr) return false;
  out.range = range(c);
  if (c->cn != nullptr) out.name = name(c->cn);
  if (c->e != nullptr) out.expr = expr(c->e);
  switch (type(c->w)) {
    case G::K_NULL: out.kind = c->no != nullptr ? Kind::kNotNull : Kind::kNull; break;
    case G::K_UNIQUE: out.kind = Kind::kUnique; break;
    case G::K_PRIMARY: out.kind = Kind::kPrimaryKey; break;
    case G::K_DEFAULT:
      out.kind = Kind::kDefault;
      out.expr = bexpr(c->be);
      break;
    case G::K_GENERATED:
      out.kind = c->ident != nullptr ? Kind::kIdentity : Kind::kGenerated;
      out.always = c->always != nullptr;
      if (c->stored != nullptr && c->always == nullptr)
        refuse(c->by, "for a generated column, GENERATED ALWAYS must be specified");
      break;
    case G::K_REFERENCES:
      out.kind = Kind::kForeignKey;
      out.references = relation(c->rt);
      out.referenced_columns = names(c->cols);
      break;
    default: break;
  }
  return true;
}

Constraint TreeBuilder::table_constraint(G::TableConstraintContext* c) {
  using Kind = Constraint::Kind;
  Constraint made;
  made.range = range(c);
  made.name = name(c->cn);
  if (c->e != nullptr) made.expr = expr(c->e);
  made.columns = names(c->cols);
  made.using_index = name(c->ui);
  switch (type(c->w)) {
    case G::K_UNIQUE: made.kind = Kind::kUnique; break;
    case G::K_PRIMARY: made.kind = Kind::kPrimaryKey; break;
    case G::K_EXCLUDE: made.kind = Kind::kExclude; break;
    case G::K_FOREIGN:
      made.kind = Kind::kForeignKey;
      made.references = relation(c->rt);
      made.referenced_columns = names(c->rcols);
      break;
    default: break;
  }
  return made;
}

const CreateTableAs* TreeBuilder::create_table_as(G::CreateTableAsContext* c) {
  auto* made = make<CreateTableAs>();
  made->name = relation(c->rel);
  made->if_not_exists = c->ine != nullptr;
  made->unlogged = c->per != nullptr && type(c->per->t) == G::K_UNLOGGED;
  made->temporary = c->per != nullptr && !made->unlogged;
  made->columns = names(c->cols);
  if (c->q != nullptr) made->query = query(c->q);
  made->with_data = c->wd == nullptr || c->wd->no == nullptr;
  return made;
}

const AlterTable* TreeBuilder::alter_table(G::AlterTableContext* c) {
  auto* made = make<AlterTable>();
  switch (type(c->kind)) {
    case G::K_INDEX: made->kind = RelationKind::kIndex; break;
    case G::K_SEQUENCE: made->kind = RelationKind::kSequence; break;
    case G::K_VIEW:
      made->kind = c->mat != nullptr ? RelationKind::kMaterializedView : RelationKind::kView;
      break;
    default: made->kind = c->frn != nullptr ? RelationKind::kForeignTable : RelationKind::kTable; break;
  }
  if (c->rel == nullptr) return made;  // ALTER TABLE ALL IN TABLESPACE
  made->table = relation_ref(c->rel);
  made->if_exists = c->ie != nullptr;
  auto* rest = c->rest;
  if (rest->place != nullptr) made->placement = placement(rest->place);
  if (!rest->so.empty()) made->sequence = sequence_change(rest->so);
  if (!rest->cmds.empty()) {
    made->commands = map(rest->cmds, [this](auto* command) { return alter_command(command); });
    return made;
  }
  AlterCommand one;
  one.range = range(rest);
  const bool columns_to_rename = made->kind != RelationKind::kIndex && made->kind != RelationKind::kSequence;
  if (rest->cname != nullptr && !columns_to_rename) syntax_error(at(rest->ren) + 1);
  if (rest->att != nullptr && rest->bound == nullptr && made->kind != RelationKind::kIndex)
    syntax_error(at(rest->stop) + 1);
  if (rest->bound != nullptr) check_bound(rest->bound);
  if (rest->ren != nullptr) {
    one.kind = rest->con != nullptr     ? AlterCommand::Kind::kRenameConstraint
               : rest->cname != nullptr ? AlterCommand::Kind::kRenameColumn
                                        : AlterCommand::Kind::kRenameTo;
    one.name = name(rest->cname);
    one.new_name = name(rest->nname);
  } else if (rest->ss != nullptr) {
    one.kind = AlterCommand::Kind::kSetSchema;
    one.new_name = name(rest->sname);
  } else if (rest->att != nullptr || rest->det != nullptr) {
    one.kind =
        rest->att != nullptr ? AlterCommand::Kind::kAttachPartition : AlterCommand::Kind::kDetachPartition;
    one.partition = relation(rest->par);
    one.concurrently = rest->con != nullptr;
  } else if (rest->place != nullptr) {
    return made;
  }
  made->commands = list(std::vector<AlterCommand>{one});
  return made;
}

const SequenceChange* TreeBuilder::sequence_change(const std::vector<G::SequenceOptionContext*>& options) {
  auto* made = make<SequenceChange>();
  for (auto* option : options) {
    switch (type(option->w)) {
      case G::K_RESTART:
        made->restart = true;
        if (option->num == nullptr) break;
        made->restart_value = option->sign != nullptr ? range(option->sign, option->num) : range(option->num);
        {
          const std::string_view digits = written(range(option->num));
          std::from_chars(digits.data(), digits.data() + digits.size(), made->restart_with);
          if (type(option->sign) == G::MINUS) made->restart_with = -made->restart_with;
        }
        break;
      case G::K_OWNED: made->owned_by = any_name(option->own); break;
      case G::K_CACHE:
      case G::K_CYCLE:
      case G::K_NO: break;
      default: made->steps = true; break;
    }
  }
  return made;
}

AlterCommand TreeBuilder::alter_command(G::AlterCommandContext* c) {
  using Kind = AlterCommand::Kind;
  AlterCommand made;
  made.range = range(c);
  made.if_exists = c->ie != nullptr;
  made.if_not_exists = c->ine != nullptr;
  made.cascade = type(c->beh) == G::K_CASCADE;
  if (c->n != nullptr) made.name = name(c->n);
  switch (type(c->w)) {
    case G::K_ADD:
      made.kind = c->c != nullptr ? Kind::kAddColumn : Kind::kAddConstraint;
      if (c->c != nullptr) {
        made.column = column(c->c);
        made.name = made.column.name;
      } else {
        made.constraint = table_constraint(c->k);
        made.name = made.constraint.name;
      }
      break;
    case G::K_DROP: made.kind = c->con != nullptr ? Kind::kDropConstraint : Kind::kDropColumn; break;
    case G::K_OWNER: made.kind = Kind::kOwnerTo; break;
    case G::K_INHERIT:
    case G::K_NO:  // also NO FORCE ROW LEVEL SECURITY
      if (c->par == nullptr) break;
      made.kind = type(c->w) == G::K_INHERIT ? Kind::kInherit : Kind::kNoInherit;
      made.partition = relation(c->par);
      break;
    case G::K_ALTER: {
      const bool setting = type(c->act) == G::K_SET;
      if (type(c->act) == G::K_TYPE) {
        made.kind = Kind::kSetType;
        made.type = type_name(c->ty);
        if (c->ue != nullptr) made.expr = expr(c->ue);
      } else if (c->nn != nullptr) {
        made.kind = setting ? Kind::kSetNotNull : Kind::kDropNotNull;
      } else if (c->e != nullptr) {
        made.kind = Kind::kSetDefault;
        made.expr = expr(c->e);
      } else if (c->dd != nullptr) {
        made.kind = Kind::kDropDefault;
      } else if (c->idn != nullptr) {
        made.kind = Kind::kAddIdentity;
        made.options = {range(c->idn).end, made.range.end};
      } else if (!c->ids.empty()) {
        made.kind = Kind::kAlterIdentity;
        for (auto* change : c->ids) made.steps |= change->num != nullptr || change->so != nullptr;
      }
      break;
    }
    default: break;
  }
  return made;
}

const CreateView* TreeBuilder::create_view(G::CreateViewContext* c) {
  auto* made = make<CreateView>();
  made->name = relation(c->rel);
  made->materialized = c->mat != nullptr;
  made->replace = c->rep != nullptr;
  made->temporary = c->per != nullptr;
  made->if_not_exists = c->ine != nullptr;
  made->columns = names(c->cols);
  made->query = query(c->q);
  return made;
}

const CreateType* TreeBuilder::create_type(G::CreateTypeContext* c) {
  using Kind = CreateType::Kind;
  auto* made = make<CreateType>();
  made->name = any_name(c->n);
  if (c->dom != nullptr) {
    made->kind = Kind::kDomain;
    made->base = type_name(c->ty);
    QualifiedName collation;
    for (auto* q : c->q) {
      Constraint ignored;
      constraint(q, ignored, collation);
    }
  } else if (c->en != nullptr) {
    made->kind = Kind::kEnum;
    made->labels = map(c->lab, [this](auto* l) { return string_of(l->t); });
  } else if (c->rng != nullptr) {
    made->kind = Kind::kRange;
  } else if (c->def != nullptr) {
    made->kind = Kind::kBase;
  } else if (c->lp != nullptr) {
    made->kind = Kind::kComposite;
  }
  return made;
}

const CreateFunction* TreeBuilder::create_function(G::CreateFunctionContext* c) {
  using Volatility = CreateFunction::Volatility;
  auto* made = make<CreateFunction>();
  made->name = function_name(c->n);
  made->procedure = type(c->kind) == G::K_PROCEDURE;
  made->replace = c->rep != nullptr;
  made->arguments = static_cast<int>(c->a.size());
  for (auto* a : c->a)
    if (a->d != nullptr) expr(a->d);
  for (auto* option : c->o) {
    if (option->co == nullptr || option->co->vol == nullptr) continue;
    if (type(option->co->vol) == G::K_IMMUTABLE) made->volatility = Volatility::kImmutable;
    if (type(option->co->vol) == G::K_STABLE) made->volatility = Volatility::kStable;
  }
  return made;
}

const DropObjects* TreeBuilder::drop(G::DropStatementContext* c) {
  auto* made = make<DropObjects>();
  made->if_exists = c->ie != nullptr;
  made->concurrently = c->conc != nullptr;
  made->cascade = type(c->beh) == G::K_CASCADE;
  if (c->kind != nullptr) made->kind = lower(range(c->kind));
  if (c->conc != nullptr) made->kind = "index";
  if (c->n != nullptr) made->names = map(c->n->n, [this](auto* n) { return any_name(n); });
  if (c->ty != nullptr) {
    made->kind = lower(range(c->ty));
    made->names = map(c->types, [this](auto* t) { return type_name(t)->name; });
  } else if (c->fn != nullptr) {
    made->kind = lower(range(c->fn));
    made->names = map(c->f, [this](auto* f) { return function_name(f->n); });
  } else if (c->on != nullptr) {
    made->kind = lower(range(c->on));
    const Name one = name(c->one);
    made->names = list(std::vector<QualifiedName>{{list(std::vector<Name>{one}), one.range}});
    made->on_table = any_name(c->table);
  } else if (c->w != nullptr) {
    made->kind = lower(range(c->w));
  }
  return made;
}

const Grant* TreeBuilder::grant(G::GrantStatementContext* c) {
  auto* made = make<Grant>();
  made->revoke = type(c->w) == G::K_REVOKE;
  if (c->t == nullptr) return made;
  made->kind = c->t->w == nullptr ? std::string_view("table") : lower(range(c->t->w));
  if (c->t->tables != nullptr) made->objects = map(c->t->tables->n, [this](auto* n) { return any_name(n); });
  if (!c->t->f.empty()) made->objects = map(c->t->f, [this](auto* f) { return function_name(f->n); });
  if (c->t->names != nullptr)
    made->objects = map(c->t->names->n, [this](auto* n) {
      const Name one = name(n);
      return QualifiedName{list(std::vector<Name>{one}), one.range};
    });
  return made;
}

const Comment* TreeBuilder::comment(G::CommentStatementContext* c) {
  auto* made = make<Comment>();
  made->kind = lower(range(c->w));
  if (c->n != nullptr) made->object = any_name(c->n);
  if (c->ty != nullptr) made->object = type_name(c->ty)->name;
  if (c->f != nullptr) made->object = function_name(c->f->n);
  return made;
}

}  // namespace kintsugi::parser
