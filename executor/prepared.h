// Prepared statements across clients and connections. Clients that prepare the same text share one name on the
// shards; a connection is given the statement when a client first needs it there.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace kintsugi::executor {

// The shape of a statement's result: a hash of its RowDescription's names and types. 0: not known yet.
using Shape = std::uint64_t;
inline constexpr Shape kNoRows = 1;
Shape shape_of_row_description(std::string_view body);

// The types of a statement's parameters as a shard has told them, 4 bytes each. Null: not known yet.
using ParameterTypes = std::shared_ptr<const std::string>;

// How a shard last accepted a statement, and under which generation of the schema. 0: never.
struct Accepted {
  std::uint64_t generation = 0;
  Shape shape = 0;
  ParameterTypes types;
};

// What a Parse asked for, immutable and shared by all threads. Two texts that are equal but were prepared under
// different search paths are two statements: PostgreSQL would otherwise have to analyse one of them again and
// again, and refuse it when its columns differ. What is known of it is known to all.
struct PreparedStatement {
  std::uint64_t id = 0;
  std::string server_name;  // "kg_<id>"
  std::string text;
  std::string type_oids;  // raw, 4 bytes each
  std::string search_path;
  mutable Accepted accepted;  // for last_accepted() and note_accepted() alone
};
using PreparedRef = std::shared_ptr<const PreparedStatement>;

PreparedRef intern_prepared(std::string_view text, std::string_view type_oids, std::string_view search_path);
// Null when nobody has it.
PreparedRef find_prepared(std::string_view text, std::string_view type_oids, std::string_view search_path);

Accepted last_accepted(const PreparedStatement& statement);
void note_accepted(const PreparedStatement& statement, Accepted accepted);

// A client's own handle: the name it chose leads here.
struct ClientStatement {
  PreparedRef statement;
  std::uint32_t effects = 0;  // what the text does to the session, kept for every Execute
  Shape shape = 0;            // as the client may have been told
  ParameterTypes types;       // likewise
  bool answered = false;      // its Parse was accepted, and the client has been told
  std::uint64_t batch = 0;    // the client's Syncs before its Parse
  bool failed = false;        // its Parse was refused, or skipped after an error: there is no such name
};
using ClientStatementRef = std::shared_ptr<ClientStatement>;

// DDL seen on any connection of this process makes what was prepared before it stale for new Parse messages.
std::uint64_t schema_generation();
void bump_schema_generation();

// What is prepared on one connection, bounded, oldest use first out.
class PreparedOnBackend {
 public:
  struct Entry {
    PreparedRef statement;
    Shape shape = 0;
    ParameterTypes types;
    std::uint64_t generation = 0;
    bool confirmed = false;  // ParseComplete has arrived
    std::list<std::uint64_t>::iterator position;
  };

  Entry* find(std::uint64_t id);  // and counts as a use
  Entry& add(PreparedRef statement);
  void erase(std::uint64_t id);
  void clear();
  // The statement to close before another is added, when there are `limit` of them; confirmed ones only.
  [[nodiscard]] PreparedRef oldest_beyond(std::size_t limit) const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::list<std::uint64_t> by_use_;  // newest first
};

}  // namespace kintsugi::executor
