// Output on its way to disk and back.
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>

#include "node/launch/attempt_fixture.hpp"
#include "node/launch/file.hpp"

namespace loam::node {
namespace {

class Logs : public AttemptTest {};

TEST_F(Logs, bytes_that_are_not_utf8_are_kept) {
  const auto status = run(shell("a", R"(printf '\377\376\000x\200\n')"));
  EXPECT_EQ(status.exit_code, 0);
  EXPECT_EQ(output("a"), std::string("\xff\xfe\0x\x80\n", 6));
}

TEST_F(Logs, a_task_that_fills_its_log_is_capped_and_neither_waits_nor_dies) {
  LaunchOrder wanted = shell("a", "yes 0123456789abcde | head -c 30000000; echo; echo last");
  wanted.log_segment_bytes = 65536;
  wanted.log_segments = 3;
  const auto status = run(wanted);
  EXPECT_EQ(status.outcome, Outcome::exited);
  EXPECT_EQ(status.exit_code, 0);
  EXPECT_EQ(status.stdout_bytes, 30'000'006);
  std::uintmax_t held = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path("a") + "/logs")) {
    if (!entry.is_symlink()) held += entry.file_size();
  }
  EXPECT_LE(held, 3u * 65536u);
  const auto chunk = supervisor_->read_log("a", "stdout", 0, 1 << 20);
  ASSERT_TRUE(chunk.ok());
  EXPECT_EQ(chunk->lost_bytes + static_cast<std::int64_t>(chunk->bytes.size()), 30'000'006);
  EXPECT_TRUE(chunk->bytes.ends_with("\nlast\n"));
}

TEST_F(Logs, a_task_that_closes_its_streams_lives_on) {
  const auto status = run(shell("a", "echo before; exec >&- 2>&- <&-; sleep 0.2; exit 5"));
  EXPECT_EQ(status.exit_code, 5);
  EXPECT_EQ(output("a"), "before\n");
}

TEST_F(Logs, the_input_is_empty) {
  EXPECT_EQ(run(shell("a", "cat; echo over")).exit_code, 0);
  EXPECT_EQ(output("a"), "over\n");
}

TEST_F(Logs, what_is_said_last_is_not_lost) {
  for (int i = 0; i < 5; ++i) {
    const std::string attempt = "a" + std::to_string(i);
    run(shell(attempt, "head -c 60000 /dev/zero; echo end; kill -9 $$"));
    EXPECT_EQ(output(attempt).size(), 60004u);
  }
}

TEST_F(Logs, a_follower_sees_every_byte_across_rotation) {
  LaunchOrder wanted = shell("a", "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done");
  wanted.log_segment_bytes = 4096;
  wanted.log_segments = 1000;
  auto started = supervisor_->start(wanted);
  ASSERT_TRUE(started.ok());
  auto watch = supervisor_->watch_logs("a");
  ASSERT_TRUE(watch.ok());
  std::string seen;
  std::int64_t offset = 0;
  bool over = false;
  while (true) {
    watch->clear();
    const bool was_over = over;
    const auto chunk = supervisor_->read_log("a", "stdout", offset, 1000);
    ASSERT_TRUE(chunk.ok());
    EXPECT_EQ(chunk->lost_bytes, 0);
    seen += chunk->bytes;
    offset = chunk->next_offset;
    if (offset < chunk->end_offset) continue;
    if (was_over) break;
    over = is_final(supervisor_->status("a")->status.phase);
    if (!over) watch->wait(100);
  }
  std::string expected;
  for (int i = 0; i < 2000; ++i) expected += "line " + std::to_string(i) + "\n";
  EXPECT_EQ(seen, expected);
}

TEST_F(Logs, a_stream_of_another_name_is_refused) {
  run(shell("a", "true"));
  EXPECT_EQ(supervisor_->read_log("a", "stdlog", 0, 10).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(supervisor_->read_log("a", "../x", 0, 10).error().kind, ErrorKind::invalid_argument);
}

TEST_F(Logs, a_full_disk_drops_output_counts_it_and_still_gets_the_end_written) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to mount a small disk";
  supervisor_.reset();
  if (::mount("tmpfs", root_.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "cannot mount a tmpfs here";
  }
  restart_supervisor();
  const auto status = run(shell("a", "yes | head -c 5000000; exit 3"));
  EXPECT_EQ(status.outcome, Outcome::exited);
  EXPECT_EQ(status.exit_code, 3);
  EXPECT_GT(status.log_dropped_bytes, 3'000'000);
  EXPECT_EQ(status.stdout_bytes + status.log_dropped_bytes, 5'000'000);
  EXPECT_TRUE(wait_until([&] { return supervisor_->remove("a").ok(); }));
  supervisor_.reset();
  ::umount2(root_.c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace loam::node
