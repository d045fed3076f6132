// One backend's part of a Fan: the statement sent, its answers understood up to the next row. Rows stand in the
// read buffer until they are taken; everything else is digested as it comes. Private to executor/.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/backend.h"
#include "executor/read_buffer.h"
#include "wire/client_messages.h"
#include "wire/server_messages.h"

namespace kintsugi::executor {

// What one branch runs, in the extended protocol.
struct BranchStatement {
  std::string_view text;
  const std::vector<std::string>* before = nullptr;
  std::string_view type_oids;      // raw, 4 bytes each
  std::string_view bind_tail;      // of the Bind message, behind the names
  std::uint32_t rows_a_chunk = 0;  // 0: all at once
  std::string portal{};            // has to have a name when there are chunks
  bool copy_out = false;           // its rows are CopyData
  bool held = false;               // not executed before go(): its snapshot is taken, and described() says so
};

class Branch {
 public:
  Branch(Backend* backend, std::uint64_t max_message) : backend_(backend), max_message_(max_message) {}

  // Composes Parse, Bind, Describe, Execute and, unless it is read in chunks, Sync.
  void start(const BranchStatement& statement);
  void go();
  // The portal is suspended: the next rows, please.
  void execute_more();
  // Ends what is read in chunks, or is still held: the portal is closed, Sync is sent. Again is fine.
  void finish();
  // Sync while the portal stays: only inside a transaction block.
  void sync();
  [[nodiscard]] bool synced() const { return syncs_ > 0 || ready_; }

  // Sends what the socket takes. An error has made the branch lost().
  void flush();
  // Reads what there is, up to `budget` of unread bytes (or the one message that is longer). True when
  // something came. An error, a breach of protocol and the end of the connection make the branch lost().
  bool read(std::size_t budget);
  [[nodiscard]] bool wants_to_read(std::size_t budget) const {
    return started_ && !settled() && (in_.size() <= budget / 2 || in_.size() < needed_);
  }

  // The row at the front, whole; nothing while none is there.
  [[nodiscard]] std::optional<wire::Frame> row();
  void drop_row();
  // All whole rows at the front but no more than `rows`, as one piece; `rows` becomes their number. With a
  // `type` they are messages of that type from now on.
  [[nodiscard]] std::string_view run_of_rows(std::uint64_t& rows, char type = wire::server::kDataRow);
  void drop(std::size_t bytes);
  // From now on rows are thrown away as they come.
  void discard();
  // Rows are set aside as they come, so that what stands behind them is seen; they are taken as before.
  void set_aside(bool on);

  [[nodiscard]] bool described() const { return described_; }
  [[nodiscard]] const std::string& description() const { return description_; }  // "": it has no rows
  // No more rows will come: it has completed or failed.
  [[nodiscard]] bool ended() const { return complete_ || failed(); }
  [[nodiscard]] bool complete() const { return complete_; }
  // The body of its CopyOutResponse.
  [[nodiscard]] const std::string& copy_response() const { return copy_response_; }
  [[nodiscard]] const std::string& tag() const { return tag_; }
  [[nodiscard]] bool empty_query() const { return empty_query_; }
  // An answer to the last Execute is still to come.
  [[nodiscard]] bool executing() const { return executing_; }
  [[nodiscard]] bool failed() const { return lost_ || !error_.empty(); }
  [[nodiscard]] bool lost() const { return lost_; }
  // ReadyForQuery has come for the last Sync, or nothing will come any more.
  [[nodiscard]] bool settled() const { return lost_ || ready_; }
  [[nodiscard]] bool sending() const { return !lost_ && !backend_->out.empty(); }
  // A whole ErrorResponse with the shard in its context.
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] const std::string& error_sqlstate() const { return error_sqlstate_; }
  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

  // Notices and notifications, raw, in the order they came.
  std::string take_asides() { return std::exchange(asides_, {}); }
  [[nodiscard]] Backend& backend() { return *backend_; }
  [[nodiscard]] const std::string& shard() const { return backend_->shard; }

  // What is unread goes back to the connection.
  void leave();

 private:
  void execute();
  void lose(const std::string& how);
  void lose_with(const Error& error);
  void digest();
  [[nodiscard]] ReadBuffer& rows() { return aside_.size() > 0 ? aside_ : in_; }
  bool on_frame(const wire::Frame& frame);
  void on_error(const wire::Frame& frame);

  Backend* backend_;
  std::uint64_t max_message_;
  ReadBuffer in_, aside_;   // rows come out of aside_ first
  std::size_t needed_ = 0;  // the whole size of the message that has begun
  std::uint64_t bytes_read_ = 0;
  char row_type_ = wire::server::kDataRow;
  bool row_ready_ = false;  // a whole row stands at the front of in_
  std::uint32_t rows_a_chunk_ = 0;
  std::string portal_;
  std::size_t befores_ = 0;  // of our own statements, whose answers are still to come
  bool described_ = false, executing_ = false, complete_ = false, lost_ = false, discarding_ = false,
       aside_on_ = false, started_ = false, held_ = false;
  bool empty_query_ = false;
  int syncs_ = 0;  // not yet answered
  bool ready_ = false, portal_closed_ = false;
  std::string description_, copy_response_, tag_, error_, error_sqlstate_, asides_;
};

}  // namespace kintsugi::executor
