// Who may use REST, on all routers of a map store: the file of each router (TokenBook) is its own copy, good
// also while the store is away, and the store tells what is made and removed elsewhere. Hashes only. A store
// that is a file has one router, and is told nothing. Any thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "admin/commands/surroundings.h"
#include "admin/token_book.h"
#include "base/deadline.h"
#include "shardmap/map_store.h"

namespace kintsugi::admin {

class SharedTokens {
 public:
  SharedTokens(const std::string& path, std::shared_ptr<const Surroundings> around);
  ~SharedTokens();
  SharedTokens(const SharedTokens&) = delete;
  SharedTokens& operator=(const SharedTokens&) = delete;

  // Reads the file, and follows the store from now on.
  Status start();

  [[nodiscard]] std::optional<TokenOwner> owner_of(const std::string& token) { return book_.owner_of(token); }
  // Asks the store, for a token that is not known here: it may have been made at another router a moment ago.
  void look_for_news();
  Result<std::vector<TokenOwner>> list();
  // The new token, good at every router when this returns. 42710 for a name that is taken.
  Result<std::string> add(const std::string& name, Role role);
  // Good for nothing here when this returns, elsewhere within a second; when the store is away, as soon as it
  // is back.
  Status remove(const std::string& name);

 private:
  [[nodiscard]] bool shared() const;
  void follow();
  // All that both sides know, on both sides. The lock is held.
  Status agree(Deadline deadline);
  Result<shardmap::MapStore*> store(Deadline deadline);
  [[nodiscard]] std::string store_id() const { return around_->map()->store_id(); }
  Status told(const std::vector<shardmap::NoteChange>& changes);

  TokenBook book_;
  const std::shared_ptr<const Surroundings> around_;
  std::timed_mutex mutex_;  // of the conversation with the store
  std::unique_ptr<shardmap::MapStore> store_;
  std::mutex ending_mutex_;
  std::condition_variable ending_;
  bool ends_ = false;
  std::thread follower_;
};

}  // namespace kintsugi::admin
