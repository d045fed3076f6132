// The data of a COPY FROM STDIN cut into rows, each for the shard that owns its key: text, CSV and binary.
// Pieces may be cut anywhere; rows go on byte for byte, so that the shards read them as the client wrote them.
// Pure: no connection is known here. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "planner/plan.h"
#include "shardmap/shard_map.h"

namespace kintsugi::executor {

class CopySplitter {
 public:
  // `map` is kept alive. 42704 when the plan's map is not in it.
  static Result<CopySplitter> make(const planner::CopyIn& plan, shardmap::MapPtr map, std::uint64_t max_row);

  // Takes a piece of the data. Errors name the row's line as PostgreSQL counts: KG001 no shardlet for the key,
  // KG002 its shardlet is closed, KG003 the key is NULL, 40001 its shardlet is being handed over, 54000 a row
  // is longer than `max_row`; and those of a key that cannot be read. After an error the splitter is done with.
  Status take(std::string_view piece);
  // The data have come to their end.
  Status finish();

  // Per shard of the plan, in its order: bytes for that shard alone, whole rows (with header and trailer), to
  // be taken away and sent as CopyData.
  [[nodiscard]] std::vector<std::string>& outputs() { return outputs_; }
  [[nodiscard]] std::uint64_t rows() const { return rows_; }

 private:
  CopySplitter(const planner::CopyIn& plan, shardmap::MapPtr map, std::uint64_t max_row);

  std::size_t take_lines(std::string_view bytes, bool last, Status& status);
  std::size_t take_tuples(std::string_view bytes, Status& status);
  std::size_t end_of_line(std::string_view bytes, bool last);
  Status on_line(std::string_view line, std::string_view whole);
  Status on_tuple(std::string_view tuple);
  bool text_fields(std::string_view line);
  bool csv_fields(std::string_view line);
  Status give(std::string_view row);
  Status to_key_owner(std::string_view row);
  void to_all(std::string_view row);
  [[nodiscard]] tl::unexpected<Error> with_line(Error error) const;

  struct Field {
    std::size_t column = 0;  // of the row
    std::size_t key = 0;     // of the key
    bool present = false, null = false;
    std::string value;  // as PostgreSQL's input function gets it, or the binary form
  };

  planner::CopyIn plan_;
  shardmap::MapPtr map_;
  const shardmap::Mapping* mapping_ = nullptr;
  std::uint64_t max_row_;
  std::vector<Field> fields_;  // by column
  std::size_t last_column_ = 0;
  std::vector<std::size_t> output_of_;  // by shard id; SIZE_MAX: it may receive no rows
  std::vector<std::string> outputs_;

  std::string rest_;                               // the beginning of a row whose end has not come
  std::size_t seen_ = 0;                           // of it, without an end in it
  bool in_quotes_ = false, after_escape_ = false;  // where the search for the end stands
  enum class Ending : std::uint8_t { kUnknown, kNewline, kReturn } ending_ = Ending::kUnknown;
  bool begun_ = false;  // binary: the header has gone by; else: the header line
  bool ended_ = false;  // \. or the trailer: what follows is read over
  std::uint64_t line_ = 0, rows_ = 0;
  std::string key_;
};

}  // namespace kintsugi::executor
