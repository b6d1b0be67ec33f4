// What the connections of one server share. Internal to this folder: the one header that sees
// Asio, for server.cpp and connection.cpp alone.
// house-allow-file heavy: no other folder may include it
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "http/connection.hpp"
#include "http/server.hpp"

namespace loam::http {

using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;
using Timer =
    boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                      boost::asio::wait_traits<std::chrono::steady_clock>, Strand>;

class Door;

// What the connections of one server share. It lives as long as the last Responder does.
struct ServerCore : std::enable_shared_from_this<ServerCore> {
  ServerCore(ServerOptions given, Handler given_handler)
      : options(std::move(given)),
        handler(std::move(given_handler)),
        context(options.threads),
        work(boost::asio::make_work_guard(context)) {}

  // From any thread. False, and nothing happens, once the server has ended.
  template <class Action>
  bool post(const Strand& strand, Action action) {
    std::lock_guard lock(post_mutex);
    if (ended) return false;
    boost::asio::post(strand, std::move(action));
    return true;
  }
  // At once where the strand is ours already.
  template <class Action>
  bool run_on(const Strand& strand, Action action) {
    if (!strand.running_in_this_thread()) return post(strand, std::move(action));
    action();
    return true;
  }

  enum class Admission { welcome, full, stopping };
  Admission admit(const std::shared_ptr<Connection>& connection) {
    std::lock_guard lock(mutex);
    if (stopping) return Admission::stopping;
    if (connections.size() >= options.connections_max) return Admission::full;
    connections.emplace(connection.get(), connection);
    return Admission::welcome;
  }
  void remove(Connection* connection) noexcept {
    std::lock_guard lock(mutex);
    if (connections.erase(connection) > 0 && connections.empty()) changed.notify_all();
  }
  void door_closed() {
    std::lock_guard lock(mutex);
    --open_doors;
    changed.notify_all();
  }

  // The server's own answer, by the program's Refusal where there is one.
  Response refuse(int status, std::string_view detail) const;
  std::vector<std::shared_ptr<Connection>> living_connections();
  bool stop(Duration grace);
  void run();

  const ServerOptions options;
  const Handler handler;
  boost::asio::io_context context;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  std::vector<std::shared_ptr<Door>> doors;
  std::vector<std::thread> threads;
  std::uint16_t tcp_port = 0;

  std::mutex mutex;
  std::condition_variable changed;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections;
  std::size_t open_doors = 0;
  std::atomic<bool> stopping = false;  // written under `mutex`

  std::mutex post_mutex;
  bool ended = false;
};

}  // namespace loam::http
