#include "gateway/fake_engine.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/assert.hpp"
#include "infer/route.hpp"

namespace loam::gateway {

namespace wire = infer::wire;

FakeEngine::FakeEngine(std::string path, Options options, Choose choose)
    : options_(std::move(options)), choose_(std::move(choose)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  LOAM_ASSERT(path.size() < sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  ::unlink(path.c_str());
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  LOAM_ASSERT(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  LOAM_ASSERT(::listen(listener_, 16) == 0);
  stop_ = ::eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { run(); });
}

FakeEngine::~FakeEngine() {
  const std::uint64_t one = 1;
  LOAM_ASSERT(::write(stop_, &one, sizeof(one)) == sizeof(one));
  thread_.join();
  ::close(listener_);
  ::close(stop_);
}

std::vector<wire::Submit> FakeEngine::submits() const {
  std::lock_guard lock(mutex_);
  return submits_;
}

std::map<std::string, TokenUsage> FakeEngine::books() const {
  std::lock_guard lock(mutex_);
  return books_;
}

void FakeEngine::run() {
  using Clock = std::chrono::steady_clock;
  auto next_tick = Clock::now();
  for (;;) {
    std::vector<pollfd> waits{{stop_, POLLIN, 0}, {listener_, POLLIN, 0}};
    std::size_t running = 0;
    for (const Peer& peer : peers_) {
      const int events = POLLIN | (peer.out.empty() ? 0 : POLLOUT);
      waits.push_back({peer.fd, static_cast<short>(events), 0});
      running += peer.running.size();
    }
    running_count_ = running;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(next_tick - Clock::now()).count();
    is_gathered_ = is_gathered_ || running >= options_.gather;
    const int timeout =
        running == 0 || !is_gathered_ ? -1 : static_cast<int>(std::max<std::int64_t>(left, 0));
    ::poll(waits.data(), waits.size(), timeout);
    if (waits[0].revents != 0) break;
    const std::size_t known = peers_.size();
    if (waits[1].revents != 0) {
      Peer peer;
      peer.fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (peer.fd >= 0) peers_.push_back(std::move(peer));
    }
    for (std::size_t i = 0; i < known; ++i) {
      if (waits[i + 2].revents != 0) take_input(peers_[i]);
    }
    if (Clock::now() >= next_tick) {
      next_tick = Clock::now() + std::chrono::milliseconds(options_.tick_ms);
      for (Peer& peer : peers_) tick(peer);
    }
    for (Peer& peer : peers_) flush(peer);
    std::erase_if(peers_, [](Peer& peer) {
      if (peer.is_lost) ::close(peer.fd);
      return peer.is_lost;
    });
  }
  for (const Peer& peer : peers_) ::close(peer.fd);
}

void FakeEngine::take_input(Peer& peer) {
  char bytes[64 * 1024];
  const ssize_t got = ::recv(peer.fd, bytes, sizeof(bytes), 0);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) peer.is_lost = true;
  if (got <= 0) return;
  peer.reader.append({bytes, static_cast<std::size_t>(got)});
  for (;;) {
    auto frame = peer.reader.next();
    if (!frame.ok()) peer.is_lost = true;
    if (!frame.ok() || !frame->has_value()) return;
    take(peer, **frame);
  }
}

void FakeEngine::take(Peer& peer, wire::Frame& frame) {
  if (std::holds_alternative<wire::Hello>(frame)) {
    wire::Welcome welcome;
    welcome.model = options_.model;
    welcome.vocabulary = 32000;
    welcome.context_tokens = options_.context_tokens;
    welcome.slots = options_.slots;
    welcome.cells = options_.cells;
    welcome.embedding_length = options_.embedding_length;
    welcome.tokens_max_default = 64;
    welcome.chat_template = true;
    wire::encode(welcome, peer.out);
  } else if (auto* asked = std::get_if<wire::Submit>(&frame)) {
    submit(peer, *asked);
  } else if (const auto* cancel = std::get_if<wire::Cancel>(&frame)) {
    ++cancels_;
    const auto found = peer.running.find(cancel->stream);
    if (found == peer.running.end()) return;
    finish(peer, found->second, wire::FinishReason::cancelled);
    peer.running.erase(found);
  } else if (std::holds_alternative<wire::AskStats>(frame)) {
    wire::Stats stats;
    stats.running = static_cast<std::uint32_t>(peer.running.size());
    stats.slots = options_.slots;
    if (options_.answers_stats) wire::encode(stats, peer.out);
  }
}

void FakeEngine::submit(Peer& peer, wire::Submit& submit) {
  {
    std::lock_guard lock(mutex_);
    submits_.push_back(submit);
  }
  Running one;
  one.script = choose_ ? choose_(submit) : Script{};
  const auto tokens = static_cast<std::uint32_t>(infer::estimate_tokens(submit.prompt));
  if (one.script.what == Script::Do::drop) {
    peer.is_lost = true;
    return;
  }
  wire::Failed failure = one.script.failure;
  failure.stream = submit.stream;
  if (tokens > options_.context_tokens) {
    one.script.what = Script::Do::refuse;
    failure.kind = ErrorKind::invalid_argument;
    failure.message = "the prompt does not fit the context";
  }
  if (one.script.what == Script::Do::refuse) return wire::encode(failure, peer.out);
  wire::encode(wire::Accepted{submit.stream, tokens, 0}, peer.out);
  one.usage.prompt_tokens = tokens;
  one.usage.cached_tokens = tokens / 2;
  one.total =
      submit.tokens_max == 0 ? options_.tokens : std::min(options_.tokens, submit.tokens_max);
  const wire::StreamId stream = submit.stream;
  one.submit = std::move(submit);
  peer.running.emplace(stream, std::move(one));
}

void FakeEngine::tick(Peer& peer) {
  // What the other side does not read yet, it will not get more of.
  constexpr std::size_t waiting_bytes_max = 1U << 20U;
  if (peer.out.size() > waiting_bytes_max || !is_gathered_) return;
  for (auto one = peer.running.begin(); one != peer.running.end() && !peer.is_lost;) {
    const bool ends = one->second.script.what != Script::Do::hold && step(peer, one->second);
    one = ends ? peer.running.erase(one) : std::next(one);
  }
}

// One token of each choice. True at the stream's end.
bool FakeEngine::step(Peer& peer, Running& one) {
  const wire::StreamId stream = one.submit.stream;
  if (one.submit.work == wire::Submit::Work::embed) {
    std::vector<float> values(options_.embedding_length, 0.5F);
    values.front() = static_cast<float>(one.submit.prompt.text.size());
    wire::encode(wire::Embedding{stream, std::move(values)}, peer.out);
    finish(peer, one, wire::FinishReason::stop);
    return true;
  }
  const bool whole = one.total < options_.tokens;
  const auto reason = whole ? wire::FinishReason::length : wire::FinishReason::stop;
  ++one.done;
  for (std::uint32_t choice = 0; choice < one.submit.choices; ++choice) {
    wire::Chunk chunk{stream, choice, one.done, options_.text, {}};
    if (one.submit.sampling.logprobs) {
      wire::TokenLogprob token{{7, options_.text, -0.25F}, {}};
      for (std::uint32_t k = 0; k < one.submit.sampling.top_logprobs; ++k)
        token.top.push_back({static_cast<infer::Token>(k), "t" + std::to_string(k), -1.5F});
      chunk.logprobs.push_back(std::move(token));
    }
    wire::encode(chunk, peer.out);
    ++chunks_;
    ++one.usage.generated_tokens;
    if (one.done >= one.total)
      wire::encode(wire::ChoiceDone{stream, choice, reason, one.done}, peer.out);
  }
  if (one.script.what == Script::Do::drop_midway) peer.is_lost = true;
  if (one.script.what == Script::Do::fail_midway) {
    wire::Failed failure = one.script.failure;
    failure.stream = stream;
    failure.usage = one.usage;
    wire::encode(failure, peer.out);
    return true;
  }
  if (one.done < one.total || peer.is_lost) return false;
  finish(peer, one, reason);
  return true;
}

void FakeEngine::finish(Peer& peer, Running& one, wire::FinishReason reason) {
  one.usage.engine_time_us = 100;
  {
    std::lock_guard lock(mutex_);
    books_[one.submit.request] = one.usage;
  }
  wire::encode(wire::Finished{one.submit.stream, reason, one.usage, {}}, peer.out);
}

void FakeEngine::flush(Peer& peer) {
  while (!peer.out.empty()) {
    const ssize_t sent = ::send(peer.fd, peer.out.data(), peer.out.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) peer.is_lost = true;
      return;
    }
    peer.out.erase(0, static_cast<std::size_t>(sent));
  }
}

}  // namespace loam::gateway
