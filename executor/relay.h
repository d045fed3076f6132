// The way back: what a shard answers, on to the client, as bytes. The relay knows which answers are
// outstanding, so that it can swallow those to questions the router asked itself, put in those that it answers
// for the shard, and tell when everything is done. It holds no connection and no buffer: chunks in, pieces out.
//
// Only the headers of rows and COPY data are looked at; a message that is longer than the chunk passes in
// pieces.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "executor/backend.h"

namespace kintsugi::executor {

struct Expected {
  enum Kind : std::uint8_t { kQuery, kParse, kBind, kDescribe, kExecute, kClose, kSync };
  enum From : std::uint8_t {
    kShard,    // the shard's answer goes to the client
    kHidden,   // the shard's answer is for the router
    kRouter,   // the router answers in the shard's place, when its turn has come
    kPoison,   // the shard will refuse it: the client gets `answer` as the error instead
    kDropped,  // nobody wants the shard's answer any more, whatever it is
  };
  Kind kind = kQuery;
  From from = kShard;
  ClientStatementRef handle;     // kParse, kDescribe: whose statement, to note what is learnt
  std::string answer;            // kRouter, kPoison: the bytes for the client
  std::uint64_t unnamed = 0;     // kParse of the unnamed statement: which one
  bool before_copy_end = false;  // kSync: a CopyDone or CopyFail was sent behind it
  // kSync, kHidden: put in by the router where the client has none. After an error before it the client goes on
  // to its own Sync.
  bool barrier = false;
  // Belongs to what the session could run again from the start (Relay::hold_back): everything up to the end of
  // `expected` does.
  bool of_unit = false;
  bool reads = false;     // kQuery, kExecute: the answer says what rows there are
  bool harmless = false;  // and it does nothing else
};

// What came to pass while chunks went by, since it was last asked.
struct RelayEvents {
  bool ddl = false;
  bool discard_all = false;  // DISCARD ALL has run: nothing is prepared any more, no setting set
  bool deallocate_all = false;
  int deallocates = 0;               // DEALLOCATE name, this many times
  std::uint32_t errors = 0;          // of the shard's, about what the client has sent
  bool preparation_failed = false;   // a hidden Parse before a simple query: the query is not to be sent
  std::uint64_t unnamed_failed = 0;  // the last unnamed statement that was refused, or skipped after an error
  std::optional<Error> hidden_query_failed;  // a query of the router's own was refused
  bool barrier_failed = false;               // an error was passed on, and the Sync behind it is the router's
  bool sync_swallowed = false;               // COPY FROM STDIN has read a Sync over: another one has to come
  // The fence of a move has refused a unit of which the client has been told nothing. It never will be: what is
  // still to come of the unit is swallowed.
  bool moved = false;
};

// DDL as far as a command tag tells. What runs inside functions is found out when a plan fails.
[[nodiscard]] bool is_ddl(std::string_view tag);

class Relay {
 public:
  // How much of one message that has to be seen whole is kept at the most.
  explicit Relay(std::uint64_t max_message) : max_message_(max_message) {}

  // The client's own, of its startup packet. It is set on connections that others share, so where PostgreSQL
  // reports that a RESET has led back to no name, the client hears this one.
  void set_application_name(std::string name) { application_name_ = std::move(name); }

  void begin(Backend* backend) {
    backend_ = backend;
    instead_of_canceled_.reset();
  }
  // What runs is about to be cancelled, and this is why; nothing: because the client wants it.
  void say_instead_of_canceled(std::optional<Error> why) { instead_of_canceled_ = std::move(why); }
  [[nodiscard]] bool attached() const { return backend_ != nullptr; }
  void end();

  // Announces an answer. One that the router gives itself goes out at once when nothing is before it.
  void expect(Expected&& expected, Outbox& client);

  // A unit is what the client has sent for one statement, or for several that are one transaction of the shard.
  // Its answers are announced with `of_unit`. As long as none has been told it can be run again and nobody
  // knows. Short answers that say nothing (BindComplete and its like) may be kept back for that, so that a
  // refusal can come behind them.
  void begin_unit(bool keep_back) {
    untold_ = true;
    hold_short_ = keep_back;
  }
  void keep_back() { hold_short_ = true; }
  [[nodiscard]] bool untold() const { return untold_; }
  // It cannot be run again: what was kept back goes out, and what comes is told as it comes.
  void tell(Outbox& client);

  // An answer is yet to begin that says what rows there are.
  [[nodiscard]] bool awaits_read() const;
  // Nothing is outstanding that may have done something.
  [[nodiscard]] bool awaits_reads_alone() const;
  // Nothing of the unit is told; the caller sees to it that it comes to an end. Of what stands before it all
  // is, and when an error is among that the unit is over.
  void drop_answers();

  // Takes a chunk from the backend. Pieces of it are passed to `client` and stand in the chunk until its flush.
  // What is left of an incomplete message goes to backend->carry. An error is the shard's breach of protocol.
  Status on_chunk(std::string_view chunk, Outbox& client);

  [[nodiscard]] bool idle() const { return expected_.empty() && pass_left_ == 0; }
  [[nodiscard]] std::size_t outstanding() const { return expected_.size(); }
  // An error has been passed on and no Sync stands behind it: the shard ignores everything until one comes.
  [[nodiscard]] bool skipping() const { return skipping_; }
  void sync_sent() { skipping_ = false; }
  [[nodiscard]] bool in_copy() const { return copy_in_; }
  // A CopyDone or CopyFail goes out.
  void copy_end_sent();
  // A COPY FROM STDIN reads data and its end is not sent yet: a Sync that is sent now is read over.
  [[nodiscard]] bool swallows_sync() const { return copy_in_ && !copy_end_sent_; }
  void sync_swallowed() { swallowed_ = true; }
  // The client has had the beginning of a message and waits for the rest: nothing else may be told to it.
  [[nodiscard]] bool within_message() const { return pass_left_ > 0 && !pass_hidden_; }
  // Whether the shard will come to an end by itself: a query or a Sync is the last that was sent.
  [[nodiscard]] bool will_end() const {
    return expected_.empty() || expected_.back().kind == Expected::kQuery ||
           expected_.back().kind == Expected::kSync;
  }
  // Cheap to ask; most chunks of most answers bring none.
  [[nodiscard]] bool has_events() const { return has_events_; }
  RelayEvents take_events() {
    has_events_ = false;
    return std::exchange(events_, {});
  }
  // What the shard said when it ended the connection.
  [[nodiscard]] const std::optional<Error>& last_words() const { return last_words_; }
  // The connection is lost: everything outstanding is answered with this error, as in PostgreSQL once for every
  // query and every Sync. True when the client's messages are to be ignored up to its next Sync, as they were
  // if an error had been told before.
  bool abandon(const Error& error, Outbox& client,
               wire::TransactionStatus status = wire::TransactionStatus::kIdle);

 private:
  Status on_frame(const wire::Frame& frame, Outbox& client);
  Status on_error(const wire::Frame& frame, Outbox& client);
  Status on_command_complete(const wire::Frame& frame, Outbox& client);
  Status on_ready(const wire::Frame& frame, Outbox& client);
  Status on_parameter_status(const wire::Frame& frame, Outbox& client);
  void on_parse_complete(const wire::Frame& frame, Outbox& client);
  void on_parameters(const wire::Frame& frame);
  void on_description(const wire::Frame& frame, Outbox& client);
  void forward(const wire::Frame& frame, Outbox& client);
  bool swallow_moved(const wire::ErrorReport& report);
  [[nodiscard]] bool in_unit() const { return !expected_.empty() && expected_.front().of_unit; }
  void finish_head(Outbox& client);
  void give_own_answers(Outbox& client);
  void drop_failed(const Expected& expected);
  void on_copy_in();
  void end_copy();

  RelayEvents& note() {
    has_events_ = true;
    return events_;
  }
  [[nodiscard]] bool head_hidden() const {
    return !expected_.empty() && expected_.front().from != Expected::kShard;
  }

  std::uint64_t max_message_;
  std::string application_name_;
  Backend* backend_ = nullptr;
  std::deque<Expected> expected_;
  std::string held_;             // of the unit's answer
  bool hold_short_ = false;      // and whether more may be
  bool untold_ = false;          // nothing of the unit has been told
  bool head_told_ = false;       // something of the first answer that is outstanding has been
  std::uint64_t pass_left_ = 0;  // of a message that goes by in pieces
  bool pass_hidden_ = false;
  bool skipping_ = false, copy_in_ = false, copy_end_sent_ = false;
  bool swallowed_ = false;     // the COPY that runs has read a Sync over, or will
  bool doubtful_end_ = false;  // a COPY that failed may or may not have read a Sync over
  std::optional<Error> last_words_, instead_of_canceled_;
  RelayEvents events_;  // written through note()
  bool has_events_ = false;
};

}  // namespace kintsugi::executor
