// Where the endpoints' instances run: as this program's own children (local_host), or as tasks of
// the pool (pool_host). An interface and plain data.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/gateway/config.hpp"
#include "app/gateway/gguf_header.hpp"
#include "base/quantity.hpp"

namespace loam::serving {

struct InstanceOrder {
  std::string name;  // which no other instance ever had: instance_name()
  std::string socket;
  EndpointConfig endpoint;
  Mebibytes memory;  // of the device, predicted
  std::vector<std::string> command;
};

// How an instance stands.
struct InstanceFact {
  enum class State {
    waiting,  // it does not run: the pool has no room for it yet, or it was put off for another
    running,
    leaving,  // somebody else is ending or pausing it: nothing new should be sent to it
    ended,    // told once
  } state = State::waiting;
  std::string name;
  // Why it waits, why it was refused, how it ended: callers of any tenant may read it.
  std::string words;
  std::string log;          // where more is to be read, for the operator
  bool is_refused = false;  // ended: it cannot be had as it was asked for; nobody need wait for it
  bool waits_for_room = false;
  bool is_due = false;  // its time is nearly up: another should take over
  // What is needed to know an instance that an earlier run of this program started.
  std::string model;
  std::string socket;
  std::string task;  // of the pool
};

// Thread-safe. Nothing here blocks, but check(), open() and close().
class InstanceHost {
 public:
  virtual ~InstanceHost() = default;
  // `on_change` is called from any thread when facts() may tell something new.
  virtual Result<void> open(std::function<void()> on_change) = 0;
  virtual void close() = 0;
  // Whether an instance of this endpoint could ever be had. For answering whoever makes one.
  virtual Result<void> check(const EndpointConfig& endpoint, Mebibytes memory) = 0;
  // False until it is known what an earlier run of this program left: before that, whoever starts
  // an instance may start it twice. `trouble` then says why not.
  virtual bool is_known() = 0;
  virtual std::string trouble() = 0;
  virtual void launch(InstanceOrder order) = 0;
  // Ends one, whatever its state. Its end is told like any other.
  virtual void end(const std::string& name) = 0;
  virtual std::vector<InstanceFact> facts() = 0;
  // Whether room is a matter of config.memory_mib (no) or of a queue that others wait in too.
  virtual bool has_queue() const = 0;
};

// The exit status with which the engine says that its model cannot be served.
inline constexpr int model_unusable_status = 3;
inline constexpr const char* model_unusable_words =
    "the model cannot be served; its owner finds the reason in the instance's log";

// The folder of the instances' sockets, which is all that they see of run_dir.
std::string engines_folder(const Config& config);
// A socket's path that was never used, and the name that goes with a model and its socket.
std::string fresh_socket(const Config& config);
std::string instance_name(const std::string& model, const std::string& socket);
// What one instance takes of a device: the weights, the key-value memory of its contexts as its
// arguments make them (with adapters, the four that the engine may make), and what a step needs.
// The file's size and a quarter where its header does not tell.
Mebibytes predicted_memory(const EndpointConfig& endpoint, const ModelFacts& facts);
// As configured, else predicted; 1 MiB where the file cannot be read. Reads the file's header.
Mebibytes instance_memory(const EndpointConfig& endpoint);
// Of the host besides: swapped streams and prefixes (--cache-mib), the program itself.
Mebibytes host_memory_beside(const EndpointConfig& endpoint);
// The model file is whole, and what is configured holds what is predicted.
Result<void> check_model(const EndpointConfig& endpoint);
std::vector<std::string> engine_command(const Config& config, const EndpointConfig& endpoint,
                                        const std::string& socket);

}  // namespace loam::serving
