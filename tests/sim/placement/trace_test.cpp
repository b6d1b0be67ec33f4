// Placement traces: both formats, and every fault named with file, line and reason.
#include "sim/trace/placement_trace.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "base/random.hpp"

namespace loam::sim {
namespace {

const std::string nodes =
    "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,393216,8,G2\n";
const std::string pods =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
    "p0,12000,16384,1,1000,,LS\n"
    "p1,6000,12288,1,460,P100|G2,BE\n"
    "p2,8000,0,0,0,,BE\n";

std::string fault_of(const std::string& nodes_text, const std::string& tasks_text) {
  const auto trace = parse_placement_trace("n.csv", nodes_text, "t.csv", tasks_text);
  return trace.ok() ? "" : trace.error().message;
}

TEST(PlacementTrace, OpenbIsReadByItsHeader) {
  const auto trace = parse_placement_trace("n.csv", nodes, "t.csv", pods);
  ASSERT_TRUE(trace.ok()) << to_text(trace.error());
  ASSERT_EQ(trace->nodes.size(), 2u);
  EXPECT_EQ(trace->device_milli(), 10'000);
  ASSERT_EQ(trace->tasks.size(), 3u);
  EXPECT_EQ(trace->tasks[1].milli, 460);
  EXPECT_EQ(trace->tasks[1].device_types, (std::vector<std::string>{"G2", "P100"}));
  EXPECT_EQ(trace->tasks[2].demand().devices, 0);
  EXPECT_FALSE(trace->has_times);
  // Columns in another order, without the optional ones.
  const auto turned = parse_placement_trace(
      "n.csv", "model,gpu,sn,memory_mib,cpu_milli\r\nG2,8,n1,393216,96000\r\n", "t.csv",
      "gpu_milli,num_gpu,memory_mib,cpu_milli,name\r\n500,1,10,20,x\r\n");
  ASSERT_TRUE(turned.ok()) << to_text(turned.error());
  EXPECT_EQ(turned->nodes[0].devices, 8);
  EXPECT_EQ(turned->tasks[0].cpu_milli, 20);
}

TEST(PlacementTrace, PlainCsvIsReadToo) {
  const auto trace = parse_placement_trace(
      "n.csv", "node,cpu_milli,memory_mib,devices,device_type,region\na,1,2,3,H100,east\n", "t.csv",
      "task,cpu_milli,memory_mib,devices,share_milli,device_types,arrival_s,duration_s\n"
      "t,1,2,1,500,H100,10,20\n");
  ASSERT_TRUE(trace.ok()) << to_text(trace.error());
  EXPECT_EQ(trace->nodes[0].region, "east");
  EXPECT_TRUE(trace->has_times);
  EXPECT_EQ(trace->tasks[0].created_s, 10);
  EXPECT_EQ(trace->tasks[0].deleted_s, 30);
  EXPECT_EQ(trace->tasks[0].tenant, "");
}

TEST(PlacementTrace, TenantsAndTheWorthOfDevicesAreReadWhereTheyAreGiven) {
  for (const char* column : {"tenant", "user"}) {
    const auto trace = parse_placement_trace("n.csv", nodes, "t.csv",
                                             "task,cpu_milli,memory_mib,devices,share_milli," +
                                                 std::string(column) + "\nt,1,2,1,500,acme\n");
    ASSERT_TRUE(trace.ok()) << to_text(trace.error());
    EXPECT_EQ(trace->tasks[0].tenant, "acme") << column;
  }
  const auto worth =
      parse_trace_nodes("n.csv",
                        "node,cpu_milli,memory_mib,devices,device_type,ce,"
                        "device_memory_mib\na,1,2,3,H200,250.5,143360\nb,1,2,3,X,,\n");
  ASSERT_TRUE(worth.ok()) << to_text(worth.error());
  EXPECT_EQ((*worth)[0].ce, MilliCe{250'500});
  EXPECT_EQ((*worth)[0].device_memory, Mebibytes{143'360});
  EXPECT_EQ((*worth)[0].line, 2);
  EXPECT_FALSE((*worth)[1].ce || (*worth)[1].device_memory);
}

TEST(PlacementTrace, FaultsNameFileLineAndReason) {
  const std::string head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n";
  EXPECT_EQ(fault_of("", pods), "n.csv:1: there is no header");
  EXPECT_EQ(fault_of("sn,cpu_milli,memory_mib,gpu\n", pods),
            "n.csv:1: the column 'model' is missing");
  EXPECT_EQ(fault_of("sn,cpu_milli,memory_mib,gpu,model\n", pods),
            "n.csv:1: the list has no nodes");
  EXPECT_EQ(fault_of("sn,sn,x\n", pods), "n.csv:1: the column 'sn' is there twice");
  EXPECT_EQ(fault_of("sn,,x\n", pods), "n.csv:1: a column has no name");
  EXPECT_EQ(fault_of(nodes + "n1,1,1,1,G2\n", pods), "n.csv:4: the node 'n1' is there twice");
  EXPECT_EQ(fault_of(nodes + "n2,1,1,1,\n", pods),
            "n.csv:4: the node has devices, but their type is not named");
  EXPECT_EQ(fault_of(nodes + "n2,-1,1,1,G2\n", pods), "n.csv:4: cpu_milli is negative: '-1'");
  const std::string worth = "node,cpu_milli,memory_mib,devices,device_type,ce,device_memory_mib\n";
  for (const char* row : {"a,1,2,3,X,-1,1", "a,1,2,3,X,0,1", "a,1,2,3,X,much,1"})
    EXPECT_TRUE(fault_of(worth + row, pods).starts_with("n.csv:2: ")) << row;
  EXPECT_EQ(fault_of(worth + "a,1,2,3,X,1,0\n", pods), "n.csv:2: the devices have no memory");
  EXPECT_EQ(fault_of(worth + "a,1,2,3,X,1,-1\n", pods),
            "n.csv:2: device_memory_mib is negative: '-1'");
  EXPECT_EQ(fault_of(nodes, "name,cpu_milli,memory_mib,num_gpu\n"),
            "t.csv:1: the column 'gpu_milli' is missing");
  EXPECT_EQ(fault_of(nodes, head), "t.csv:1: the list has no tasks");
  EXPECT_EQ(fault_of(nodes, head + "p,1,1,1\n"), "t.csv:2: there are 4 fields, the header has 6");
  EXPECT_EQ(fault_of(nodes, head + "p,1,1,1,1000,,x\n"),
            "t.csv:2: there are 7 fields, the header has 6");
  EXPECT_EQ(fault_of(nodes, head + "p,1,1,1,x,\n"),
            "t.csv:2: gpu_milli is 'x', which is no whole number");
  EXPECT_EQ(fault_of(nodes, head + "p,1,1,1,,\n"),
            "t.csv:2: gpu_milli is '', which is no whole number");
  EXPECT_EQ(fault_of(nodes, head + "p,1.5,1,1,1,\n"),
            "t.csv:2: cpu_milli is '1.5', which is no whole number");
  EXPECT_EQ(fault_of(nodes, head + "p,1,1,1,1001,\n"), "t.csv:2: gpu_milli is '1001', above 1000");
  EXPECT_EQ(fault_of(nodes, head + "p,99999999999999999999,1,1,1,\n"),
            "t.csv:2: cpu_milli is '99999999999999999999', above 10000000");
  EXPECT_EQ(fault_of(nodes, head + "p,1,1,2,0,\n"),
            "t.csv:2: the task asks for 2 devices and none of each");
  EXPECT_EQ(fault_of(nodes, head + "\n\np,1,1,1,500,H200\n"),
            "t.csv:4: no node has a device of the type 'H200'");
  const std::string times =
      "task,cpu_milli,memory_mib,devices,share_milli,creation_time,deletion_time\n";
  EXPECT_EQ(fault_of(nodes, times + "p,1,1,1,1,20,10\n"),
            "t.csv:2: the task ends at 10 s, before it begins at 20 s");
  EXPECT_EQ(fault_of(nodes, times + "p,1,1,1,1,-20,10\n"),
            "t.csv:2: creation_time is negative: '-20'");
}

TEST(PlacementTrace, AFileThatIsNotThereIsSaidSo) {
  const auto trace = read_placement_trace("/nonexistent/nodes.csv", "/nonexistent/tasks.csv");
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.error().kind, ErrorKind::not_found);
  EXPECT_NE(trace.error().message.find("/nonexistent/nodes.csv"), std::string::npos);
}

TEST(PlacementTrace, AMillionLinesAreRead) {
  std::string text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n";
  constexpr int lines = 1'000'000;
  text.reserve(30'000'000);
  for (int i = 0; i < lines; ++i) text += "p" + std::to_string(i) + ",1000,2048,1,500\n";
  const auto trace = parse_placement_trace("n.csv", nodes, "t.csv", text);
  ASSERT_TRUE(trace.ok()) << to_text(trace.error());
  EXPECT_EQ(trace->tasks.size(), static_cast<std::size_t>(lines));
  const auto broken = parse_placement_trace("n.csv", nodes, "t.csv", text + "p,1000,2048,1,5oo\n");
  ASSERT_FALSE(broken.ok());
  EXPECT_TRUE(broken.error().message.starts_with("t.csv:1000002: ")) << broken.error().message;
}

TEST(PlacementTrace, AnyBytesGiveATraceOrAnError) {
  const std::string letters = "0123456789,,,\n\n\r-.|PG \"\xff";
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    std::string text = pods;
    for (std::int64_t n = random.between(1, 8); n > 0; --n) {
      text[random.below(text.size())] = letters[random.below(letters.size())];
    }
    const auto trace = parse_placement_trace("n.csv", nodes, "t.csv", text);
    if (!trace.ok()) {
      ASSERT_TRUE(trace.error().message.starts_with("t.csv:")) << trace.error().message;
    }
  }
}

}  // namespace
}  // namespace loam::sim
