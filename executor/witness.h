// Serializable transactions over several shards. PostgreSQL watches over what is read and written on one
// server: a transaction that has read what another one overwrote (T -> X), and has overwritten what a third one
// had read (R -> T), is a pivot, and one of the three is refused. Over two shards each server sees one of the
// two arrows at most, and write skew commits.
//
// So each server is shown the arrow that may be elsewhere: a transaction over several shards reads
// kintsugi.serial where it begins, and a witness, serializable and on a connection of its own, writes to it and
// commits after the transaction's snapshot was taken. From then on the transaction has an arrow out of it on
// every shard, to one who has committed before it, and PostgreSQL refuses whatever would give it one into it.
// Of any circle over several shards something is refused so, and now and then what was no circle.
// docs/decisions/0053-serializable.md.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/io/gate.h"
#include "executor/backend.h"
#include "executor/connect_shard.h"

namespace kintsugi::executor {

// What the transaction itself runs on each shard, after the witness.
inline constexpr std::string_view kReadWitness = "SELECT FROM kintsugi.serial";

// Belongs to one thread. One connection a shard and login; who comes while it is in use shares the next commit.
class Witness {
 public:
  using Logins = std::vector<std::shared_ptr<const ShardLogin>>;

  // Everything runs in the gate.
  Witness(io::Loop& loop, io::Gate& gate) : loop_(loop), gate_(gate) {}
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  // Ends when on each of the shards a witness has committed that began after this call.
  io::Task<Status> commit_on(Logins shards, io::Waiter* waiter, Deadline deadline);

 private:
  struct Wish {
    io::Waiter* waiter = nullptr;  // null: nobody waits any more
    std::size_t left = 0;          // shards
    std::optional<Error> error;
  };
  struct Stand {
    explicit Stand(io::Loop& loop) : waiter(loop) {}
    io::Waiter waiter;
    std::shared_ptr<const ShardLogin> login;
    std::unique_ptr<Backend> backend;
    std::vector<std::shared_ptr<Wish>> wishes;
    bool busy = false;
  };

  static io::Task<> run(Stand* stand);
  static io::Task<Status> commit(Stand* stand);

  io::Loop& loop_;
  io::Gate& gate_;
  std::map<const ShardLogin*, std::unique_ptr<Stand>> stands_;
};

}  // namespace kintsugi::executor
