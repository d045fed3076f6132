#include "executor/catalog_feed.h"

#include "base/log.h"
#include "executor/catalog_reader.h"
#include "shardmap/pg_session.h"

namespace kintsugi::executor {
namespace {

using namespace std::chrono_literals;

constexpr auto kReadTimeout = 20s;

}  // namespace

CatalogFeed::CatalogFeed(std::function<shardmap::MapPtr()> map, Deliver deliver,
                         std::chrono::milliseconds every)
    : map_(std::move(map)), deliver_(std::move(deliver)), every_(every) {}

CatalogFeed::~CatalogFeed() {
  stop();
}

void CatalogFeed::start(std::chrono::milliseconds patience) {
  thread_ = std::thread([this] { run(); });
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [this] { return looked_; });
}

void CatalogFeed::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  std::vector<std::function<void()>> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting.swap(waiting_);
  }
  for (const auto& done : waiting) done();
}

void CatalogFeed::refresh(std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    if (!stop_) {
      waiting_.push_back(std::move(done));
      changed_.notify_all();
      return;
    }
  }
  done();
}

planner::CatalogPtr CatalogFeed::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

void CatalogFeed::run() {
  for (;;) {
    std::vector<std::function<void()>> waiting;
    {
      std::unique_lock lock(mutex_);
      if (looked_) changed_.wait_for(lock, every_, [this] { return stop_ || !waiting_.empty(); });
      if (stop_) break;
      waiting.swap(waiting_);
    }
    look(!waiting.empty());
    for (const auto& done : waiting) done();
    {
      const std::lock_guard lock(mutex_);
      looked_ = true;
    }
    changed_.notify_all();
  }
  session_.reset();
}

void CatalogFeed::look(bool wanted) {
  const shardmap::MapPtr map = map_();
  const shardmap::Shard* home = map == nullptr ? nullptr : map->home_shard();
  if (home == nullptr) return;
  const Deadline deadline = Deadline::in(kReadTimeout);
  const auto read = [&]() -> Status {
    if (session_ == nullptr || !session_->good() || dsn_ != home->dsn) {
      session_.reset();
      mark_.clear();
      KG_TRY(session_, shardmap::PgSession::connect(home->dsn, true, deadline));
      dsn_ = home->dsn;
    }
    KG_TRY(std::string mark, schema_mark(*session_, deadline));
    if (mark == mark_) return {};
    KG_TRY(planner::CatalogPtr catalog, read_catalog(*session_, deadline));
    mark_ = std::move(mark);
    const bool same = catalog->fingerprint() == current()->fingerprint();
    {
      const std::lock_guard lock(mutex_);
      current_ = catalog;
    }
    if (!same) deliver_(std::move(catalog));
    return {};
  };
  const Status done = read();
  if (done) {
    complained_ = false;
  } else if (!std::exchange(complained_, true) || wanted) {
    log::warning("the catalogue could not be read", {{"shard", home->name}, {"error", done.error().message}});
  }
}

}  // namespace kintsugi::executor
