// Instances as tasks of the pool, over loamd's API in front of a real engine loop: asked for once,
// found again, seen waiting, put off, ended and refused.
#include "app/gateway/pool_host.hpp"

#include "gateway/pool_fixture.hpp"

namespace loam::serving {
namespace {

using State = InstanceFact::State;

struct PoolHostTest : PoolTest {
  PoolHostTest() {
    config.run_dir = folder / "run";
    config.engine_program = "/bin/engine";
  }
  ~PoolHostTest() override {
    if (host) host->close();
  }

  void open() {
    host = std::make_unique<PoolHost>(config);
    ASSERT_TRUE(host->open({}).ok());
  }
  // A new run of the program.
  void reopen() {
    host->close();
    ended.clear();
    open();
  }
  InstanceOrder order(const std::string& share = "0.5", const std::string& owner = "acme") {
    InstanceOrder made;
    made.socket = fresh_socket(config);
    made.name = instance_name("tiny", made.socket);
    made.endpoint.model = "tiny";
    made.endpoint.owner = owner;
    made.endpoint.file = "/models/tiny.gguf";
    made.endpoint.share = share;
    made.memory = Mebibytes{512};
    made.command = engine_command(config, made.endpoint, made.socket);
    return made;
  }
  // Of the instance; an ended one is told once, so it is kept here.
  InstanceFact fact(const std::string& name) {
    InstanceFact found;
    found.words = "not known";
    for (InstanceFact& one : host->facts()) {
      if (one.state == State::ended) ended[one.name] = one;
      if (one.name == name) found = one;
    }
    return ended.contains(name) ? ended.at(name) : found;
  }
  bool becomes(const std::string& name, State state) {
    return http::eventually([&] {
      const InstanceFact one = fact(name);
      return one.words != "not known" && one.state == state;
    });
  }
  std::vector<api::TaskRecord> tasks() { return daemon.tasks({}).value(); }
  TaskId only_task() {
    EXPECT_TRUE(http::eventually([&] { return tasks().size() == 1; }));
    return tasks().empty() ? TaskId{} : tasks().front().id;
  }

  std::unique_ptr<PoolHost> host;
  std::map<std::string, InstanceFact> ended;
};

TEST_F(PoolHostTest, AnInstanceIsATaskOfItsOwner) {
  serve();
  open();
  InstanceOrder asked = order();
  asked.endpoint.tags = {{"team", "green"}};
  host->launch(asked);
  const TaskId id = only_task();
  const api::TaskRecord task = tasks().front();
  EXPECT_EQ(task.spec.attribution.model, "tiny");
  EXPECT_EQ(task.spec.attribution.tags, asked.endpoint.tags);
  EXPECT_EQ(task.spec.request.share, MilliDevice{500});
  EXPECT_EQ(task.spec.request.memory, Mebibytes{512});
  ASSERT_EQ(task.spec.mounts.size(), 2U);
  EXPECT_EQ(task.spec.mounts[0].source, engines_folder(config));
  EXPECT_FALSE(task.spec.mounts[0].read_only);
  EXPECT_EQ(task.spec.mounts[1].source, "/models");
  EXPECT_TRUE(task.spec.mounts[1].read_only);
  daemon.start(id);
  EXPECT_TRUE(becomes(asked.name, State::running));
  EXPECT_EQ(fact(asked.name).task, id.text());
}

TEST_F(PoolHostTest, AModelBesideTheSocketsLeavesTheirFolderWritable) {
  InstanceOrder asked = order();
  asked.endpoint.file = engines_folder(config) + "/tiny.gguf";
  const api::TaskRequest task = task_of(config, asked);
  ASSERT_EQ(task.mounts.size(), 1U);
  EXPECT_FALSE(task.mounts[0].read_only);
}

TEST_F(PoolHostTest, OneThatIsNotWantedIsStopped) {
  serve();
  open();
  const InstanceOrder asked = order();
  host->launch(asked);
  daemon.start(only_task());
  ASSERT_TRUE(becomes(asked.name, State::running));
  host->end(asked.name);
  EXPECT_TRUE(http::eventually([&] { return daemon.executor.stopped.size() == 1; }));
  daemon.end(only_task());
  EXPECT_TRUE(becomes(asked.name, State::ended));
  EXPECT_FALSE(fact(asked.name).is_refused);
}

TEST_F(PoolHostTest, OneWithoutRoomWaitsAndSaysWhy) {
  serve();
  open();
  const InstanceOrder first = order("0.7");
  const InstanceOrder second = order("0.7");
  host->launch(first);
  ASSERT_TRUE(http::eventually([&] { return tasks().size() == 1; }));
  daemon.start(only_task());
  host->launch(second);
  ASSERT_TRUE(http::eventually([&] { return fact(second.name).waits_for_room; }));
  ASSERT_TRUE(http::eventually([&] { return !fact(second.name).words.empty(); }));
  EXPECT_EQ(fact(second.name).state, State::waiting);
  host->end(second.name);  // it never ran
  EXPECT_TRUE(becomes(second.name, State::ended));
  EXPECT_TRUE(daemon.executor.stopped.empty());
}

TEST_F(PoolHostTest, WhatThePoolWillNotTakeIsRefusedInItsWords) {
  serve();
  open();
  for (const auto& [share, owner, says] :
       {std::tuple{"0.5", "nobody", "nobody"}, {"5", "acme", "share"}, {"x", "acme", "share"}}) {
    const InstanceOrder asked = order(share, owner);
    EXPECT_FALSE(host->check(asked.endpoint, asked.memory).ok()) << share << owner;
    host->launch(asked);
    ASSERT_TRUE(becomes(asked.name, State::ended)) << says;
    EXPECT_TRUE(fact(asked.name).is_refused);
    EXPECT_NE(fact(asked.name).words.find(says), std::string::npos) << fact(asked.name).words;
  }
  EndpointConfig large = order().endpoint;
  EXPECT_FALSE(host->check(large, Mebibytes{80 * 1024 + 1}).ok());  // than any device
  EXPECT_TRUE(host->check(large, Mebibytes{1024}).ok());
  large.owner.clear();
  EXPECT_FALSE(host->check(large, Mebibytes{1024}).ok());
  EXPECT_TRUE(tasks().empty());
}

TEST_F(PoolHostTest, AnotherRunFindsItsTasksAndLosesAndDoublesNone) {
  serve();
  open();
  const InstanceOrder asked = order();
  host->launch(asked);
  daemon.start(only_task());
  ASSERT_TRUE(becomes(asked.name, State::running));
  reopen();
  ASSERT_TRUE(http::eventually([&] { return host->is_known(); }));
  const InstanceFact found = fact(asked.name);
  EXPECT_EQ(found.state, State::running);
  EXPECT_EQ(found.model, "tiny");
  EXPECT_EQ(found.socket, asked.socket);
  EXPECT_EQ(tasks().size(), 1U);
  // Sent again after a lost answer, it is the same task.
  host->launch(asked);
  host->launch(asked);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(tasks().size(), 1U);
}

TEST_F(PoolHostTest, TasksOfOthersAreLeftAlone) {
  serve();
  Config elsewhere = config;
  elsewhere.run_dir = folder / "other";
  PoolHost other(elsewhere);
  ASSERT_TRUE(other.open({}).ok());
  InstanceOrder theirs = order();
  theirs.socket = fresh_socket(elsewhere);
  theirs.command = engine_command(elsewhere, theirs.endpoint, theirs.socket);
  other.launch(theirs);
  only_task();
  open();
  ASSERT_TRUE(http::eventually([&] { return host->is_known(); }));
  EXPECT_TRUE(host->facts().empty());
  other.close();
}

TEST_F(PoolHostTest, WithoutADaemonNothingIsKnownAndNothingIsLost) {
  open();
  EXPECT_TRUE(http::eventually([&] { return host->trouble().find("loamd") == 0; }));
  EXPECT_FALSE(host->is_known());
  const InstanceOrder asked = order();
  host->launch(asked);
  EXPECT_EQ(fact(asked.name).state, State::waiting);
  serve();
  daemon.start(only_task());
  ASSERT_TRUE(becomes(asked.name, State::running));
  server.reset();  // away again: what it last said counts
  EXPECT_TRUE(http::eventually([&] { return !host->trouble().empty(); }));
  EXPECT_EQ(fact(asked.name).state, State::running);
  serve();
  EXPECT_TRUE(http::eventually([&] { return host->trouble().empty(); }));
  EXPECT_EQ(tasks().size(), 1U);
}

TEST_F(PoolHostTest, OneWhoseTimeIsNearlyUpIsDue) {
  serve();
  open();
  const InstanceOrder asked = order();
  host->launch(asked);
  daemon.start(only_task());
  ASSERT_TRUE(becomes(asked.name, State::running));
  EXPECT_FALSE(fact(asked.name).is_due);
  daemon.clock.advance(asked.endpoint.time - Duration::minutes(5));
  EXPECT_TRUE(http::eventually([&] { return fact(asked.name).is_due; }));
}

}  // namespace
}  // namespace loam::serving
