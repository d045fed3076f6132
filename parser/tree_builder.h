// Reads ANTLR's contexts into our tree, once, straight after the parse. It also refuses what PostgreSQL's
// grammar refuses by precedence or in its actions (a < b < c, a subquery in FROM without a name). One use, one
// thread.
#pragma once

#include <cstring>
#include <vector>

#include "parser/grammar_parser.h"
#include "parser/grammar_tokens.h"
#include "parser/statement.h"

namespace kintsugi::parser {

class TreeBuilder {
 public:
  // `text` is the whole client text, of which the statement is the part from `base` on.
  TreeBuilder(Statement& statement, std::string_view text, std::uint32_t base)
      : statement_(statement), full_text_(text), base_(base), text_(statement.text()) {}

  Status build(Grammar::StatementContext* context);

 private:
  using G = Grammar;
  using Rule = antlr4::ParserRuleContext;

  // ---- memory
  template <class T>
  T* make() {
    static_assert(std::is_trivially_destructible_v<T>);
    statement_.arena_bytes_ += sizeof(T);
    return new (statement_.arena_.allocate(sizeof(T), alignof(T))) T();
  }
  template <class T>
  List<T> list(const std::vector<T>& items) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (items.empty()) return {};
    statement_.arena_bytes_ += sizeof(T) * items.size();
    T* copy = static_cast<T*>(statement_.arena_.allocate(sizeof(T) * items.size(), alignof(T)));
    std::uninitialized_copy(items.begin(), items.end(), copy);
    return {copy, items.size()};
  }
  std::string_view keep(std::string_view text);
  // Each context of a vector through one member function.
  template <class Context, class Function>
  auto map(const std::vector<Context*>& contexts, Function function) {
    std::vector<std::decay_t<decltype(function(contexts[0]))>> items;
    items.reserve(contexts.size());
    for (Context* context : contexts) items.push_back(function(context));
    return list(items);
  }

  // ---- places
  static const GrammarToken* at(const antlr4::Token* token) { return static_cast<const GrammarToken*>(token); }
  static std::size_t type(const antlr4::Token* token) { return token == nullptr ? 0 : at(token)->type(); }
  [[nodiscard]] Range range(const antlr4::Token* token) const {
    const Range r = at(token)->range();
    return {r.begin - base_, r.end - base_};
  }
  [[nodiscard]] Range range(const antlr4::Token* first, const antlr4::Token* last) const {
    return {range(first).begin, range(last).end};
  }
  [[nodiscard]] Range range(const Rule* rule) const {
    if (rule == nullptr || rule->stop == nullptr) return {};
    return range(rule->start, rule->stop);
  }
  [[nodiscard]] static Range between(Range first, Range last) { return {first.begin, last.end}; }
  [[nodiscard]] std::string_view written(Range r) const { return r.of(text_); }
  std::string_view lower(Range r);  // in lower case, white space as one blank

  // ---- errors: the first one stands
  void syntax_error(const antlr4::Token* token);
  void misplaced_star(const antlr4::Token* last);
  void refuse(const antlr4::Token* where, std::string message, std::string hint = {},
              std::string_view state = sqlstate::kSyntaxError);

  // ---- names and literals
  Name name_of(const antlr4::Token* token);
  template <class Context>
  Name name(const Context* context) {
    return context == nullptr ? Name{} : name_of(context->t);
  }
  Name own_name(const G::OwnNameContext* c) {
    return c == nullptr ? Name{} : c->n != nullptr ? name(c->n) : name_of(c->t);
  }
  List<Name> names(const G::NameListContext* c);
  QualifiedName qualified(Name first, const std::vector<G::ColLabelContext*>& rest);
  QualifiedName any_name(const G::AnyNameContext* c);
  QualifiedName relation(const G::AnyNameContext* c);  // at most database.schema.table
  QualifiedName function_name(const G::AnyFuncNameContext* c);
  std::string_view string_of(const antlr4::Token* token);
  std::string_view operator_text(const antlr4::Token* token);

  // ---- expressions (build_expression.cc)
  const Expr* expr(G::ExprContext* c);
  const Expr* bexpr(G::BexprContext* c);
  const Expr* apply(G::ExprContext* c, const Expr* left);
  const Expr* like(G::ExprContext* c, const Expr* left, Like::Form form);
  const Expr* quantified(G::ExprContext* c, const Expr* left);
  const Expr* is_test(G::ExprContext* c, const Expr* left);
  void check_chain(G::ExprContext* c);
  List<const Expr*> exprs(G::ExprListContext* c);
  const Expr* primary(G::PrimaryContext* c);
  const Expr* named(G::PrimaryContext* c);
  const Expr* parenthesised(G::PrimaryContext* c);
  const Expr* indirect(const Expr* base, const std::vector<G::IndirectionContext*>& steps, std::size_t from,
                       Range whole);
  Indirection::Element step(G::IndirectionContext* c);
  const Expr* literal(const antlr4::Token* token);
  const Expr* string_literal(const antlr4::Token* token);
  const Expr* binary(const G::QualifiedOpContext* q, const antlr4::Token* op, const Expr* left,
                     const Expr* right, Range whole);
  const Expr* row(G::RowValueContext* c);
  const Expr* overlaps(const Expr* left, G::RowValueContext* right, Range whole);
  const Expr* case_expr(G::PrimaryContext* c);
  const Expr* array(G::ArrayLiteralContext* c);
  const Subquery* subquery(Subquery::Form form, G::SubqueryContext* sub, G::WrappedSubqueryContext* wrapped,
                           Range whole);
  const Expr* typed_literal(G::TypedLiteralContext* c);
  const Expr* common_function(G::CommonFunctionContext* c);
  List<Name> operator_schema(const G::OperatorNameContext* c);

  // ---- calls, types, windows (build_call.cc)
  const FuncCall* call(QualifiedName name, G::CallArgumentsContext* args, G::CallSuffixContext* suffix,
                       Range whole);
  const FuncCall* special(const antlr4::Token* word, const std::vector<const Expr*>& args, Range whole);
  Argument argument(G::ArgumentContext* c);
  const Over* over(G::CallSuffixContext* c);
  const WindowSpec* window_spec(G::WindowSpecContext* c);
  void frame(G::FrameClauseContext* c, WindowSpec& spec);
  List<SortItem> order_by(G::OrderByContext* c);
  SortItem sort_item(G::SortItemContext* c);
  const TypeName* type_name(G::TypeNameContext* c);
  const TypeName* func_type(G::FuncTypeContext* c);
  TypeName simple_type(G::SimpleTypeContext* c);
  TypeName constant_type(G::ConstantTypeContext* c);
  Name system_name(std::string_view name, Range r) { return {name, r}; }

  // ---- queries (build_query.cc)
  const Query* query(G::QueryContext* c);
  const Query* query(const WithClause* with, G::QueryBodyContext* c, Range whole);
  const Query* query(G::SubqueryContext* c);
  const Query* query(G::WrappedSubqueryContext* c);
  const Query* query(G::AnySubqueryContext* c);
  const SetOperand* set_expr(G::SetExprContext* c);
  const SetOperand* set_term(G::SetTermContext* c);
  const SetOperand* set_primary(G::SetPrimaryContext* c);
  const SetOperand* combine(const antlr4::Token* op, G::SetQuantifierContext* q, const SetOperand* left,
                            const SetOperand* right);
  const Select* select(G::SetPrimaryContext* c);
  void limits(G::LimitClauseContext* c, Query& query);
  void check_options(G::QueryBodyContext* c, const Query& outer);
  void check_label(G::ExprContext* c, const antlr4::Token* label);
  List<Target> targets(G::TargetListContext* c);
  GroupItem group_item(G::GroupItemContext* c);
  const WithClause* with(G::WithClauseContext* c);
  const CommonTable* common_table(G::CommonTableContext* c);
  List<Locking> locking(G::LockingClauseContext* c);
  Preparable preparable(G::PreparableContext* c);
  List<const FromItem*> from(const std::vector<G::FromItemContext*>& items);
  const FromItem* from_item(G::FromItemContext* c);
  const FromItem* from_primary(G::FromPrimaryContext* c);
  const FromItem* join(const FromItem* left, G::JoinTailContext* c, const antlr4::Token* first);
  const FromItem* from_function(G::FromPrimaryContext* c);
  const Expr* windowless(G::WindowlessCallContext* c);
  List<ColumnDefinitionItem> column_aliases(const std::vector<G::ColumnAliasContext*>& c);
  Alias alias(G::TableAliasContext* c);
  const TableSample* sample(G::TableSampleContext* c);
  TableRef relation_ref(G::RelationNameContext* c);
  const Insert* insert(const WithClause* with, G::InsertBodyContext* c, Range whole);
  const Update* update(const WithClause* with, G::UpdateBodyContext* c, Range whole);
  const Delete* del(const WithClause* with, G::DeleteBodyContext* c, Range whole);
  const Merge* merge(const WithClause* with, G::MergeBodyContext* c, Range whole);
  AssignTarget assign_target(G::AssignTargetContext* c);
  List<SetClause> set_clauses(G::SetClausesContext* c);
  IndexElement index_element(G::IndexElementContext* c);

  // ---- utilities (build_utility.cc)
  StatementBody utility(G::StatementContext* c);
  const Transaction* transaction(G::TransactionStatementContext* c);
  TransactionModes modes(G::TransactionModesContext* c);
  const DeclareCursor* declare(G::DeclareCursorContext* c);
  const Fetch* fetch(G::FetchStatementContext* c);
  const Set* set(G::SetStatementContext* c);
  void set_rest(G::SetRestContext* c, Set& set);
  template <class Context>
  std::string_view setting(const Context* c);
  std::string_view dotted(const std::vector<G::ColIdContext*>& parts);
  const Copy* copy(G::CopyStatementContext* c);
  Option copy_option(G::CopyOptionContext* c);
  Option old_copy_option(G::CopyOldOptionContext* c);
  std::string_view value_of(G::CopyValueContext* c);
  const Explain* explain(G::ExplainStatementContext* c);
  const Utility* head(std::string_view head, QualifiedName relation = {});

  // ---- statements known by their head (build_head.cc)
  const Utility* known_by_head(G::HeadStatementContext* c);
  QualifiedName name_behind(const std::vector<Token>& tokens, std::string_view word);
  Name name_of(const Token& token);

  // ---- definitions (build_definition.cc)
  const CreateTable* create_table(G::CreateTableContext* c);
  const CreateTableAs* create_table_as(G::CreateTableAsContext* c);
  const AlterTable* alter_table(G::AlterTableContext* c);
  AlterCommand alter_command(G::AlterCommandContext* c);
  const SequenceChange* sequence_change(const std::vector<G::SequenceOptionContext*>& options);
  ColumnDefinition column(G::ColumnDefinitionContext* c);
  bool constraint(G::ColumnConstraintContext* c, Constraint& out, QualifiedName& collation);
  Constraint table_constraint(G::TableConstraintContext* c);
  void check_bound(G::PartitionBoundContext* c);
  const Placement* placement(G::PlacementContext* c);
  StatementBody definition(G::StatementContext* c);
  const CreateView* create_view(G::CreateViewContext* c);
  const CreateType* create_type(G::CreateTypeContext* c);
  const CreateFunction* create_function(G::CreateFunctionContext* c);
  const DropObjects* drop(G::DropStatementContext* c);
  const Grant* grant(G::GrantStatementContext* c);
  const Comment* comment(G::CommentStatementContext* c);

  // ---- Kintsugi's own (build_own.cc)
  StatementBody own(G::OwnStatementContext* c);
  StatementBody own_shardlet(G::OwnStatementContext* c);
  KeyValue key_value(G::KeyValueContext* c);
  List<KeyValue> key_tuple(G::KeyTupleContext* c);
  List<Option> own_options(G::OwnOptionsContext* c);
  List<Name> own_names(G::OwnNameListContext* c);

  Statement& statement_;
  std::string_view full_text_;
  std::uint32_t base_;
  std::string_view text_;
  Error error_;
  bool failed_ = false;
};

}  // namespace kintsugi::parser
