// Clients that write and count through small routers while something else happens, and know what must come out.
#pragma once

#include <atomic>
#include <random>
#include <thread>

#include "tests/splitmerge/moving.h"
#include "tests/splitmerge/small_router.h"

namespace kintsugi::splitmerge {

class Load {
 public:
  // Each of `writers` has the tenants whose number leaves its own as the remainder, so it knows every amount.
  Load(const std::string& store, int tenants, int writers, int readers) : tenants_(tenants) {
    for (int i = 0; i < 2; ++i)
      routers_.push_back(std::make_unique<SmallRouter>(store, "router" + std::to_string(i)));
    amounts_.resize(static_cast<std::size_t>(tenants), 100);
    orders_.resize(static_cast<std::size_t>(tenants));
    for (int i = 0; i < writers; ++i) threads_.emplace_back([this, i, writers] { write(i, writers); });
    for (int i = 0; i < readers; ++i) threads_.emplace_back([this, i] { count(i); });
  }
  ~Load() { stop(); }

  // What went wrong; empty: nothing did.
  std::string stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    const std::lock_guard lock(mutex_);
    return problem_;
  }
  [[nodiscard]] std::uint64_t writes() const { return writes_; }
  [[nodiscard]] std::uint64_t counts() const { return counts_; }
  [[nodiscard]] int bounced() const { return bounced_; }
  // In milliseconds, of one write each; after stop().
  std::vector<double> waits;

  // After stop(): what the acknowledged writes add up to is what the shards hold.
  void expect_all_there(const std::vector<std::pair<std::int64_t, std::int64_t>>& stock,
                        const std::vector<std::pair<std::int64_t, std::int64_t>>& orders) const {
    ASSERT_EQ(stock.size(), amounts_.size());
    for (const auto& [tenant, amount] : stock)
      EXPECT_EQ(amount, amounts_[static_cast<std::size_t>(tenant)]) << "of tenant " << tenant;
    std::set<std::pair<std::int64_t, std::int64_t>> expected;
    for (std::size_t t = 0; t < orders_.size(); ++t) {
      for (const std::int64_t id : orders_[t]) expected.insert({static_cast<std::int64_t>(t), id});
    }
    const std::set<std::pair<std::int64_t, std::int64_t>> found(orders.begin(), orders.end());
    EXPECT_EQ(found.size(), orders.size()) << "an order is there twice";
    EXPECT_EQ(found, expected);
  }

 private:
  void complain(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (problem_.empty()) problem_ = what;
  }

  void write(int me, int writers) {
    SmallRouter::Client client(*routers_[static_cast<std::size_t>(me) % routers_.size()]);
    std::mt19937 random(static_cast<unsigned>(me));
    std::int64_t next_order = 1000000 + me;
    while (!stop_) {
      const std::int64_t tenant =
          static_cast<std::int64_t>(random() % static_cast<unsigned>(tenants_ / writers)) * writers + me;
      const auto at = static_cast<std::size_t>(tenant);
      const std::string t = std::to_string(tenant);
      const unsigned dice = random() % 4;
      if (dice < 2) {
        const auto rows = client.write(
            tenant, "UPDATE stock SET amount = amount + 1 WHERE tenant = " + t + " RETURNING amount");
        if (!rows) return complain(rows.error().to_string());
        if (rows->size() != 1)
          return complain("tenant " + t + " has " + std::to_string(rows->size()) + " rows");
        if (std::stoll(*(*rows)[0][0]) != ++amounts_[at]) return complain("tenant " + t + " has lost a write");
      } else if (dice == 2 || orders_[at].empty()) {
        next_order += 10;
        const auto rows = client.write(tenant, "INSERT INTO orders (tenant, id, note) VALUES (" + t + ", " +
                                                   std::to_string(next_order) + ", 'x')");
        if (!rows) return complain(rows.error().to_string());
        orders_[at].push_back(next_order);
      } else {
        const auto rows = client.write(tenant, "DELETE FROM orders WHERE tenant = " + t + " AND id = " +
                                                   std::to_string(orders_[at].back()) + " RETURNING id");
        if (!rows) return complain(rows.error().to_string());
        if (rows->size() != 1) return complain("an order of tenant " + t + " was gone");
        orders_[at].pop_back();
      }
      ++writes_;
      std::this_thread::sleep_for(kBreath);
    }
    const std::lock_guard lock(mutex_);
    waits.insert(waits.end(), client.waits.begin(), client.waits.end());
    bounced_ += client.bounced;
  }

  void count(int me) {
    SmallRouter::Client client(*routers_[static_cast<std::size_t>(me) % routers_.size()]);
    while (!stop_) {
      const auto rows = client.count("stock", "tenants");
      if (!rows) return complain(rows.error().to_string());
      if (*rows != static_cast<std::uint64_t>(tenants_))
        return complain("a fan-out counted " + std::to_string(*rows) + " of " + std::to_string(tenants_));
      ++counts_;
      std::this_thread::sleep_for(kBreath);
    }
  }

  // They are many to a step of a move, and leave it some of the processors.
  static constexpr std::chrono::milliseconds kBreath{1};

  const int tenants_;
  std::vector<std::unique_ptr<SmallRouter>> routers_;
  std::vector<std::int64_t> amounts_;
  std::vector<std::vector<std::int64_t>> orders_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> writes_{0};
  std::atomic<std::uint64_t> counts_{0};
  std::mutex mutex_;
  std::string problem_;
  int bounced_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace kintsugi::splitmerge
