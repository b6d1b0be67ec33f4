#include "node/launch/metadata.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace loam::node {

namespace {

constexpr std::size_t clients_max = 16;          // the oldest goes when one more comes
constexpr std::size_t head_bytes_max = 8 << 10;  // a spot handler's request has some 200 bytes
constexpr std::string_view head_end = "\r\n\r\n";

std::string answer_of(const char* status, std::string_view type, std::string_view body) {
  return std::string("HTTP/1.1 ") + status + "\r\nContent-Type: " + std::string(type) +
         "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nMetadata-Flavor: Google\r\nConnection: close\r\n\r\n" + std::string(body);
}

std::string plain(std::string_view body) {
  return answer_of("200 OK", "text/plain", body);
}

std::string not_there() {
  return answer_of("404 Not Found", "text/plain", "not found\n");
}

std::string answer_get(std::string_view path, const MetadataView& view) {
  const bool noticed = !view.deadline.empty();
  if (path == "/latest/meta-data/instance-id") return plain(view.attempt);
  if (path == "/latest/meta-data/spot/instance-action" && noticed) {
    return answer_of("200 OK", "application/json",
                     R"({"action":"terminate","time":")" + view.deadline + R"("})");
  }
  if (path == "/latest/meta-data/spot/termination-time" && noticed) return plain(view.deadline);
  if (path == "/computeMetadata/v1/instance/preempted") return plain(noticed ? "TRUE" : "FALSE");
  return not_there();
}

}  // namespace

std::string metadata_answer(std::string_view head, const MetadataView& view) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const std::size_t first = line.find(' ');
  const std::size_t second = line.find(' ', first == line.npos ? first : first + 1);
  if (second == line.npos || !line.substr(second + 1).starts_with("HTTP/1."))
    return answer_of("400 Bad Request", "text/plain", "not an HTTP/1.1 request\n");
  const std::string_view method = line.substr(0, first);
  std::string_view path = line.substr(first + 1, second - first - 1);
  path = path.substr(0, path.find('?'));
  // A session token is a courtesy to clients that insist on one: there is nothing to protect.
  if (method == "PUT" && path == "/latest/api/token") return plain("loam");
  if (method != "GET" && method != "HEAD")
    return answer_of("405 Method Not Allowed", "text/plain", "only GET\n");
  std::string answer = answer_get(path, view);
  if (method == "HEAD") answer.resize(answer.find(head_end) + head_end.size());
  return answer;
}

Result<MetadataServer> MetadataServer::listen() {
  MetadataServer server;
  server.listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!server.listener_.valid()) return os_error("making the metadata socket", errno);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const int fd = server.listener_.get();
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(fd, static_cast<int>(clients_max)) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return os_error("listening on the loopback for the metadata address", errno);
  }
  server.port_ = ntohs(address.sin_port);
  return server;
}

std::string MetadataServer::address() const {
  return listener_.valid() ? "http://127.0.0.1:" + std::to_string(port_) : std::string();
}

void MetadataServer::add_waits(std::vector<pollfd>& waits) const {
  if (!listener_.valid()) return;
  waits.push_back({listener_.get(), POLLIN, 0});
  for (const Client& client : clients_) waits.push_back({client.socket.get(), POLLIN, 0});
}

void MetadataServer::serve(const MetadataView& view) {
  if (!listener_.valid()) return;
  for (;;) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) break;
    if (clients_.size() == clients_max) clients_.pop_front();
    clients_.push_back({std::move(socket), {}});
  }
  for (auto client = clients_.begin(); client != clients_.end();) {
    char buffer[2048];
    ssize_t n = 0;
    while ((n = ::read(client->socket.get(), buffer, sizeof buffer)) > 0) {
      client->input.append(buffer, static_cast<std::size_t>(n));
      if (client->input.size() > head_bytes_max) break;
    }
    const bool gone = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    const bool whole = client->input.find(head_end) != std::string::npos;
    const bool too_long = client->input.size() > head_bytes_max;
    if (whole && !too_long) {
      const std::string answer = metadata_answer(client->input, view);
      // Far below a socket's buffer; who does not read it, loses it.
      (void)!::send(client->socket.get(), answer.data(), answer.size(),
                    MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    client = whole || too_long || gone ? clients_.erase(client) : std::next(client);
  }
}

}  // namespace loam::node
