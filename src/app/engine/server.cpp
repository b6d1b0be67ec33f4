// The loop and the clients.
#include "app/engine/server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace loam::serve {

namespace wire = infer::wire;

std::uint64_t monotonic_us() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

namespace {

Error system_error(const std::string& what) {
  return Error{ErrorKind::unavailable, what + ": " + std::strerror(errno), "correct the path"};
}

// Listens at `path`. A leftover file nobody listens at is replaced; a live one is a conflict.
Result<int> listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return invalid(
        "the socket path '" + path + "' is " + std::to_string(path.size()) + " bytes long",
        "give one of 1 to " + std::to_string(sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return system_error("no socket can be made");
  const bool live = connect(probe, name, sizeof address) == 0;
  close(probe);
  if (live) {
    return Error{ErrorKind::conflict, "another process listens at '" + path + "'",
                 "choose another path"};
  }
  unlink(path.c_str());
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return system_error("no socket can be made");
  if (bind(listener, name, sizeof address) != 0 || listen(listener, 64) != 0) {
    const Error error = system_error("cannot listen at '" + path + "'");
    close(listener);
    return error;
  }
  return listener;
}

}  // namespace

Server::Server(const Model& model, ServerOptions options)
    : model_(model), options_(std::move(options)), started_us_(monotonic_us()) {}

Server::~Server() {
  if (listener_ >= 0) {
    close(listener_);
    unlink(options_.socket_path.c_str());
  }
  if (usage_file_ >= 0) close(usage_file_);
}

Result<std::unique_ptr<Server>> Server::make(const Model& model, ServerOptions options) {
  std::unique_ptr<Server> server(new Server(model, std::move(options)));
  const ServerOptions& wanted = server->options_;
  if (!wanted.usage_path.empty()) {
    server->usage_file_ =
        open(wanted.usage_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (server->usage_file_ < 0) return system_error("cannot write '" + wanted.usage_path + "'");
  }
  LOAM_TRY(plain, Instance::make(model, wanted.instance, {}, server->counters_));
  server->pools_.push_back({{}, std::move(plain), {}});
  LOAM_TRY(reader, PromptReader::make(model));
  server->reader_ = std::move(reader);
  LOAM_TRY(listener, listen_at(wanted.socket_path));
  server->listener_ = listener;
  return server;
}

bool Server::is_idle() const {
  return !has_work() && requests_.empty() && embeddings_.empty() && reading_.empty();
}

bool Server::in_use(const RequestKey& key) const {
  return requests_.count(key) + embeddings_.count(key) + reading_.count(key) > 0;
}

bool Server::has_work() const {
  for (const Pool& pool : pools_) {
    if (pool.instance->batcher().has_work()) return true;
  }
  return false;
}

void Server::run(const std::atomic<bool>& stop) {
  while (goes_on(stop)) {
    bytes_read_ = 0;
    wait_for_clients(stop);
    drop_gone();
    for (std::size_t index = 0; index < pools_.size(); ++index) {
      if (pools_[index].instance->batcher().has_work()) step(index);
    }
    check_drained();
    for (auto& [id, connection] : connections_) connection.flush();
  }
  const Error ending{ErrorKind::unavailable, "the instance ends",
                     "send the request to another one"};
  while (!requests_.empty()) fail_request(requests_.begin()->first, ending);
  while (!embeddings_.empty()) fail_request(embeddings_.begin()->first, ending);
  for (const auto& [key, serial] : reading_) {
    send(key.first, wire::Failed{key.second, ending.kind, ending.message, ending.next_step, 0, {}});
  }
  for (auto& [id, connection] : connections_) connection.flush();
}

// Until it is stopped; then for as long as what runs may take to end, with nothing new let in.
bool Server::goes_on(const std::atomic<bool>& stop) {
  if (!stop) return true;
  const auto now = std::chrono::steady_clock::now();
  if (!stopped_at_) {
    stopped_at_ = now;
    draining_.push_back(0);  // an id that names no connection
  }
  return !is_idle() && now - *stopped_at_ < options_.drain_max;
}

void Server::wait_for_clients(const std::atomic<bool>& stop) {
  std::vector<pollfd> sockets{{listener_, POLLIN, 0}, {reader_->descriptor(), POLLIN, 0}};
  std::vector<Connection*> order;
  for (auto& [id, connection] : connections_) {
    const short events = connection.wants_to_write() ? POLLIN | POLLOUT : POLLIN;
    sockets.push_back({connection.socket(), events, 0});
    order.push_back(&connection);
  }
  // Not for ever, so that a stop that came just before is seen without a race.
  const int wait_ms = has_work() || stop ? 0 : 1000;
  if (poll(sockets.data(), sockets.size(), wait_ms) <= 0) return;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (sockets[i + 2].revents & POLLOUT) order[i]->flush();
    if (sockets[i + 2].revents & (POLLIN | POLLHUP | POLLERR)) read_from(*order[i]);
  }
  if (sockets[1].revents & POLLIN) take_read();
  if (sockets[0].revents & POLLIN) accept_clients();
}

void Server::accept_clients() {
  while (true) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return;
    const ConnectionId id = next_connection_++;
    connections_.emplace(id, Connection(id, socket));
  }
}

void Server::read_from(Connection& connection) {
  connection.receive();
  while (!connection.closing) {
    auto frame = connection.reader().next();
    if (frame.ok() && !frame->has_value()) return;
    if (frame.ok()) {
      handle(connection, std::move(**frame));
      continue;
    }
    const Error& error = frame.error();
    connection.send(wire::Failed{0, error.kind, error.message, error.next_step, 0, {}});
    connection.closing = true;
  }
}

void Server::handle(Connection& connection, wire::Frame frame) {
  const auto refuse = [&](const std::string& message, const std::string& next) {
    connection.send(wire::Failed{0, ErrorKind::invalid_argument, message, next, 0, {}});
    connection.closing = true;
  };
  if (const auto* hello = std::get_if<wire::Hello>(&frame)) {
    if (hello->version != wire::protocol_version) {
      return refuse("the client speaks version " + std::to_string(hello->version),
                    "speak version " + std::to_string(wire::protocol_version));
    }
    connection.greeted = true;
    connection.send(welcome());
  } else if (!connection.greeted) {
    refuse("the first frame is no Hello", "greet first");
  } else if (auto* submit = std::get_if<wire::Submit>(&frame)) {
    this->submit(connection, std::move(*submit));
  } else if (const auto* cancel = std::get_if<wire::Cancel>(&frame)) {
    this->cancel({connection.id(), cancel->stream});
  } else if (auto* ask = std::get_if<wire::Tokenize>(&frame)) {
    tokenize(connection, std::move(*ask));
  } else if (std::holds_alternative<wire::AskStats>(frame)) {
    connection.send(stats());
  } else if (std::holds_alternative<wire::Drain>(frame)) {
    draining_.push_back(connection.id());
  } else {
    refuse("a client sent an engine's frame", "send only a client's frames");
  }
}

void Server::drop_gone() {
  for (auto entry = connections_.begin(); entry != connections_.end();) {
    if (!entry->second.ended) {
      ++entry;
      continue;
    }
    const ConnectionId gone = entry->first;
    std::vector<RequestKey> theirs;
    for (const auto& [key, request] : requests_) {
      if (key.first == gone) theirs.push_back(key);
    }
    for (const auto& [key, job] : embeddings_) {
      if (key.first == gone) theirs.push_back(key);
    }
    for (const auto& [key, serial] : reading_) {
      if (key.first == gone) theirs.push_back(key);
    }
    for (const RequestKey& key : theirs) cancel(key);
    std::erase(draining_, gone);
    entry = connections_.erase(entry);
  }
}

void Server::send(ConnectionId connection, const wire::Frame& frame) {
  const auto found = connections_.find(connection);
  if (found != connections_.end()) found->second.send(frame);
}

void Server::check_drained() {
  if (draining_.empty() || !is_idle()) return;
  for (const ConnectionId connection : draining_) send(connection, wire::Drained{});
  // Still draining: an id that names no connection keeps refusing new requests.
  draining_.assign(1, 0);
}

wire::Welcome Server::welcome() const {
  const infer::BatcherConfig& config = pools_.front().instance->batcher().config();
  const Instance::Compute& compute = pools_.front().instance->compute();
  wire::Welcome out;
  out.model = options_.model_name;
  out.description = model_.description();
  out.file_type = model_.file_type();
  out.parameters = llama_model_n_params(model_.handle());
  out.weights_bytes = llama_model_size(model_.handle());
  out.vocabulary = static_cast<std::uint32_t>(model_.vocabulary_size());
  out.context_tokens = pools_.front().instance->batcher().capacity();
  out.slots = config.slots;
  out.cells = config.cells;
  out.kv_token_bytes = config.token_bytes;
  out.embedding_length = static_cast<std::uint32_t>(llama_model_n_embd_out(model_.handle()));
  out.tokens_max_default = options_.tokens_max_default;
  out.chat_template = !model_.chat_template().empty();
  out.adapters = model_.adapter_names();
  out.compute = std::string("llama ") + LOAM_LLAMA_VERSION + ", " +
                std::to_string(options_.instance.threads) + " thread(s), " +
                (compute.fused_attention ? "fused attention, " : "attention not fused, ") +
                (compute.graph_reuse ? "graphs reused, " : "graphs made anew, ") +
                (config.unified ? "shared" : "separate") + " key-value streams; " +
                llama_print_system_info();
  return out;
}

std::string Server::summary() const {
  std::uint64_t reused = 0;
  for (const Pool& pool : pools_) {
    reused += static_cast<std::uint64_t>(
        std::max(0, llama_perf_context(pool.instance->context()).n_reused));
  }
  return std::to_string(totals_.steps) + " steps in " + std::to_string(totals_.steps_us / 1000) +
         " ms, " + std::to_string(reused) + " graphs reused";
}

wire::Stats Server::stats() const {
  wire::Stats out = totals_;
  out.uptime_ms = (monotonic_us() - started_us_) / 1000;
  for (const Pool& pool : pools_) {
    const infer::Batcher& batcher = pool.instance->batcher();
    const infer::Batcher::Load load = batcher.load();
    out.running += load.running;
    out.waiting += load.waiting;
    out.swapped += load.swapped;
    out.slots += batcher.config().slots;
    out.cells += batcher.config().cells;
    out.cells_used += load.cells_used;
    out.cells_promised += load.cells_promised;
    out.fragmentation_permille = std::max(out.fragmentation_permille, load.fragmentation_permille);
    out.cache_bytes += batcher.prefixes().bytes();
    out.cache_bytes_max += batcher.prefixes().bytes_max();
    out.preemptions += load.preemptions;
    out.compactions += load.compactions;
  }
  out.waiting += static_cast<std::uint32_t>(reading_.size());
  for (const auto& [name, totals] : tenants_) {
    wire::TenantStats tenant{name, 0, 0, 0, totals.requests, totals.usage, counters_.counter(name)};
    for (const Pool& pool : pools_) {
      const infer::Batcher::Load load = pool.instance->batcher().load_of(name);
      tenant.running += load.running;
      tenant.waiting += load.waiting;
      tenant.swapped += load.swapped;
    }
    out.tenants.push_back(std::move(tenant));
  }
  return out;
}

}  // namespace loam::serve
