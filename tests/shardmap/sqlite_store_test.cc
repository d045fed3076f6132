#include "shardmap/sqlite_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/shardmap/store_contract.h"

namespace kintsugi::shardmap {
namespace {

class SqliteStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = (std::filesystem::temp_directory_path() / "kg-store-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::unique_ptr<MapStore> open() {
    auto store = open_store("sqlite:map.db", directory_, contract::soon());
    if (!store) throw std::runtime_error(store.error().to_string());
    return std::move(*store);
  }
  std::string directory_;
};

}  // namespace

TEST_F(SqliteStoreTest, CommitsAndLoads) {
  contract::commits_and_loads([this] { return open(); });
}
TEST_F(SqliteStoreTest, RefusesAStaleBase) {
  contract::refuses_a_stale_base([this] { return open(); });
}
TEST_F(SqliteStoreTest, LosesNoUpdate) {
  contract::loses_no_update([this] { return open(); }, 3, 15);
}
TEST_F(SqliteStoreTest, WakesWhoWaits) {
  contract::wakes_who_waits([this] { return open(); });
}
TEST_F(SqliteStoreTest, KeepsNotes) {
  contract::keeps_notes([this] { return open(); });
}

TEST_F(SqliteStoreTest, TheFileIsForItsOwnerAlone) {
  open();
  struct stat facts {};
  ASSERT_EQ(stat((directory_ + "/map.db").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
}

TEST_F(SqliteStoreTest, ANewerFileIsRefused) {
  open();
  const auto db = SqliteDb::open(directory_ + "/map.db");
  ASSERT_TRUE((*db)->run("PRAGMA user_version = 99"));
  const auto store = open_store("sqlite:map.db", directory_, contract::soon());
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().sqlstate, "0A000");
  EXPECT_NE(store.error().message.find("version 99"), std::string::npos);
}

TEST_F(SqliteStoreTest, ADamagedFileIsAnError) {
  const auto store = open();
  (void)contract::must(store->commit(contract::must(store->load(contract::soon())), contract::first_edit(), {},
                                     contract::soon()));
  const auto db = SqliteDb::open(directory_ + "/map.db");
  ASSERT_TRUE((*db)->run("UPDATE entry SET high = low WHERE name = 't3'"));
  const auto loaded = store->load(contract::soon());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().sqlstate, "XX001");
}

TEST_F(SqliteStoreTest, AReplicaFollowsAndBecomes) {
  const auto store = open();
  const StoredMap empty = contract::must(store->load(contract::soon()));
  const StoredMap first = contract::must(store->commit(empty, contract::first_edit(), {}, contract::soon()));
  auto replica = SqliteStore::open(directory_ + "/replica.db");
  ASSERT_TRUE(replica);
  ASSERT_TRUE((*replica)->become(first));
  EXPECT_EQ(export_map(*contract::must((*replica)->load(contract::soon())).map), export_map(*first.map));
  const MapEdit edit{edit::DropShardlet{"t1"}};
  const StoredMap second = contract::must(store->commit(first, edit, {}, contract::soon()));
  ASSERT_TRUE((*replica)->follow(*first.map, {2, second.token, edit}, *second.map));
  const StoredMap copy = contract::must((*replica)->load(contract::soon()));
  EXPECT_EQ(export_map(*copy.map), export_map(*second.map));
  EXPECT_EQ(copy.token, second.token);
}

}  // namespace kintsugi::shardmap
