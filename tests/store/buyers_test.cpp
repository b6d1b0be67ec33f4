// Who tenants are on their invoices: by time, forgotten for good, and in a file that others cannot
// read.
#include "store/buyers.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "history.hpp"

namespace loam::store {
namespace {

const Buyer london{"ACME Ltd", "1 High Street\nLondon", "GB123"};
const Buyer oxford{"ACME Ltd", "2 Broad Street\nOxford", "GB123"};
constexpr Instant march{1'772'323'200'000};
constexpr Instant april{1'775'001'600'000};

TEST(BuyerStoreTest, WhatWasSaidHoldsFromThenOnAndSurvivesReopening) {
  const TestFolder folder;
  {
    auto store = BuyerStore::open(folder / "buyers.db");
    ASSERT_TRUE(store.ok()) << to_text(store.error());
    ASSERT_TRUE(store->set(acme, london, march).ok());
    ASSERT_TRUE(store->set(acme, oxford, april).ok());
  }
  auto store = BuyerStore::open(folder / "buyers.db");
  ASSERT_TRUE(store.ok()) << to_text(store.error());
  EXPECT_EQ(*store->at(acme, march - Duration{1}), Buyer{});
  EXPECT_EQ(*store->at(acme, march), london);
  EXPECT_EQ(*store->at(acme, april - Duration{1}), london);
  EXPECT_EQ(*store->at(acme, april), oxford);
  EXPECT_EQ(*store->at(beta, april), Buyer{});
}

TEST(BuyerStoreTest, WhatIsForgottenIsInTheFileNoMore) {
  const TestFolder folder;
  auto store = BuyerStore::open(folder / "buyers.db");
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE(store->set(acme, london, march).ok());
  ASSERT_TRUE(store->set(beta, {"Beta AG", "", ""}, march).ok());
  ASSERT_TRUE(store->forget(acme).ok());
  EXPECT_EQ(*store->at(acme, april), Buyer{});
  EXPECT_EQ(store->at(beta, april)->name, "Beta AG");
  std::ifstream file(folder / "buyers.db", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(bytes.find("Beta AG"), std::string::npos);
  EXPECT_EQ(bytes.find("High Street"), std::string::npos);
}

TEST(BuyerStoreTest, NobodyElseMayReadIt) {
  const TestFolder folder;
  ASSERT_TRUE(BuyerStore::open(folder / "buyers.db").ok());
  struct stat facts {};
  ASSERT_EQ(::stat((folder / "buyers.db").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
}

TEST(BuyerStoreTest, AFileThatIsNotItsOwnIsRefused) {
  const TestFolder folder;
  std::ofstream(folder / "text.db") << "not a database, but long enough to be looked at as one";
  EXPECT_FALSE(BuyerStore::open(folder / "text.db").ok());
  {
    auto other = Database::open(folder / "other.db", OpenMode::create);
    ASSERT_TRUE(other.ok());
    ASSERT_TRUE(other->execute("CREATE TABLE t(x)").ok());
  }
  const auto other = BuyerStore::open(folder / "other.db");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().kind, ErrorKind::invalid_argument);
  {
    auto newer = Database::open(folder / "newer.db", OpenMode::create);
    ASSERT_TRUE(newer.ok());
    ASSERT_TRUE(newer->execute("PRAGMA application_id=1279415641; PRAGMA user_version=9").ok());
  }
  const auto newer = BuyerStore::open(folder / "newer.db");
  ASSERT_FALSE(newer.ok());
  EXPECT_EQ(newer.error().kind, ErrorKind::unsupported);
}

}  // namespace
}  // namespace loam::store
