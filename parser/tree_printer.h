// The printer behind to_string: one overloaded `put` a kind of node. Inside parser/ only.
#pragma once

#include <string>

#include "parser/statement.h"

namespace kintsugi::parser {

class TreePrinter {
 public:
  [[nodiscard]] std::string take() { return std::move(out_); }

  void put(std::monostate) {}
  void put(const Expr* e);
  void put(const Query* q);
  void put(const Select& s);
  void put(const SetOperand& s);
  void put(const FromItem& f);
  void put(const TypeName& t);
  void put(const WindowSpec& w);
  void put(const Preparable& p);
  void put(const Insert* n);
  void put(const Update* n);
  void put(const Delete* n);
  void put(const Merge* n);
  void put(const Transaction* n);
  void put(const DeclareCursor* n);
  void put(const Fetch* n);
  void put(const CloseCursor* n);
  void put(const Prepare* n);
  void put(const Execute* n);
  void put(const Deallocate* n);
  void put(const Set* n);
  void put(const Reset* n);
  void put(const Show* n);
  void put(const Discard* n);
  void put(const LockTable* n);
  void put(const Notify* n);
  void put(const Copy* n);
  void put(const Explain* n);
  void put(const Vacuum* n);
  void put(const Call* n);
  void put(const Utility* n);
  void put(const CreateTable* n);
  void put(const CreateTableAs* n);
  void put(const AlterTable* n);
  void put(const CreateIndex* n);
  void put(const CreateView* n);
  void put(const CreateSequence* n);
  void put(const CreateSchema* n);
  void put(const CreateType* n);
  void put(const CreateFunction* n);
  void put(const DropObjects* n);
  void put(const Truncate* n);
  void put(const Grant* n);
  void put(const Comment* n);
  void put(const CreateShard* n);
  void put(const AlterShard* n);
  void put(const CreateShardMap* n);
  void put(const CreateShardlet* n);
  void put(const AlterShardlet* n);
  void put(const DropOwn* n);
  void put(const SplitShardlet* n);
  void put(const MergeShardlets* n);
  void put(const MoveShardlet* n);
  void put(const Rebalance* n);
  void put(const DrainShard* n);
  void put(const ControlJob* n);
  void put(const ShowOwn* n);

 private:
  // `open("insert")` prints "(insert"; words and nodes follow with a blank between them; `close` ends it.
  void open(std::string_view head);
  void close() { out_ += ')'; }
  void blank() {
    if (!out_.empty() && out_.back() != '(' && out_.back() != ' ') out_ += ' ';
  }
  void say(std::string_view text) {
    blank();
    out_ += text;
  }
  void say(const Name& name) { name_text(name.text); }
  void say(const QualifiedName& name);
  void name_text(std::string_view text);
  void quoted(std::string_view text);
  void flag(bool on, std::string_view text) {
    if (on) say(text);
  }
  void clause(std::string_view head, const Expr* e);
  void clause(std::string_view head, const Name& name);
  void clause(std::string_view head, const QualifiedName& name);
  template <class T, class Function>
  void clause(std::string_view head, const List<T>& items, Function each) {
    if (items.empty()) return;
    open(head);
    for (const T& item : items) each(item);
    close();
  }
  void names(std::string_view head, const List<Name>& items);
  void options(const List<Option>& items);
  void exprs(std::string_view head, const List<const Expr*>& items);
  void sort(std::string_view head, const List<SortItem>& items);
  void targets(std::string_view head, const List<Target>& items);
  void from(std::string_view head, const List<const FromItem*>& items);
  void assign(std::string_view head, const List<SetClause>& items);
  void columns(const List<AssignTarget>& items);
  void steps(const List<Indirection::Element>& items);
  void group(const GroupItem& item);
  void with(const WithClause* clause);
  void bound(const FrameBound& bound);
  void modes(const TransactionModes& modes);
  void table(const TableRef& t);
  void alias(const Alias& a);
  void call(const FuncCall& f);
  void column(const ColumnDefinition& c);
  void constraint(const Constraint& c);
  void placement(const Placement* p);
  void key(const KeyValue& v);
  void keys(std::string_view head, const List<KeyValue>& values);
  void index_elements(std::string_view head, const List<IndexElement>& items);

  std::string out_;
};

}  // namespace kintsugi::parser
