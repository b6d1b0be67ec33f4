#include "app/engine/prompt_reader.hpp"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace loam::serve {

namespace wire = infer::wire;

namespace {

constexpr int reader_nice = 5;  // a quarter of a processor where the maths takes the rest

}  // namespace

const infer::Prompt& UnreadRequest::prompt() const {
  const auto* submit = std::get_if<wire::Submit>(&frame);
  return submit != nullptr ? submit->prompt : std::get<wire::Tokenize>(frame).prompt;
}

const std::string& UnreadRequest::tenant() const {
  static const std::string nobody;
  const auto* submit = std::get_if<wire::Submit>(&frame);
  return submit != nullptr ? submit->tenant : nobody;
}

std::size_t UnreadRequest::bytes() const {
  const infer::Prompt& asked = prompt();
  std::size_t sum = asked.text.size() + asked.tokens.size() * sizeof(infer::Token);
  for (const infer::ChatMessage& message : asked.messages) {
    sum += message.role.size() + message.content.size();
  }
  if (const auto* submit = std::get_if<wire::Submit>(&frame))
    sum += submit->sampling.grammar.text.size();
  return sum;
}

Result<ReadRequest> read_request(const Model& model, const UnreadRequest& request) {
  ReadRequest out;
  LOAM_TRY(prompt, model.tokenize(request.prompt(), request.tokens_max));
  out.prompt = std::move(prompt);
  const auto* submit = std::get_if<wire::Submit>(&request.frame);
  if (submit == nullptr || submit->work == wire::Submit::Work::embed) return out;
  for (std::uint32_t choice = 0; choice < submit->choices; ++choice) {
    LOAM_TRY(sampler, Sampler::make(model, submit->sampling, request.seed + choice));
    out.samplers.push_back(std::move(sampler));
  }
  return out;
}

Result<std::unique_ptr<PromptReader>> PromptReader::make(const Model& model,
                                                         std::size_t unread_bytes_max) {
  std::unique_ptr<PromptReader> reader(new PromptReader(model, unread_bytes_max));
  reader->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (reader->wake_ < 0) {
    return Error{ErrorKind::unavailable,
                 std::string("no event descriptor can be made: ") + std::strerror(errno),
                 "raise the limit of open files"};
  }
  reader->thread_ = std::thread([raw = reader.get()] { raw->work(); });
  return reader;
}

PromptReader::~PromptReader() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  if (wake_ >= 0) close(wake_);
}

Result<void> PromptReader::add(UnreadRequest request) {
  const std::string tenant = request.tenant();
  const std::size_t bytes = request.bytes();
  const std::lock_guard lock(mutex_);
  std::size_t& held = bytes_[tenant];
  if (held > 0 && held + bytes > unread_bytes_max_) {
    return Error{ErrorKind::exhausted,
                 std::to_string(held) + " bytes of prompts wait to be read already",
                 "come again later"};
  }
  held += bytes;
  unread_[tenant].push_back(std::move(request));
  changed_.notify_one();
  return {};
}

void PromptReader::forget(std::uint64_t serial) {
  const std::lock_guard lock(mutex_);
  for (auto queue = unread_.begin(); queue != unread_.end(); ++queue) {
    for (auto request = queue->second.begin(); request != queue->second.end(); ++request) {
      if (request->serial != serial) continue;
      bytes_[queue->first] -= request->bytes();
      queue->second.erase(request);
      if (queue->second.empty()) unread_.erase(queue);
      return;
    }
  }
}

std::vector<PromptReader::Done> PromptReader::take() {
  const std::lock_guard lock(mutex_);
  std::uint64_t count = 0;
  // Nothing to read is as good: the list below says what there is.
  (void)!read(wake_, &count, sizeof count);
  return std::exchange(done_, {});
}

void PromptReader::work() {
  // Of this thread alone; where it is not allowed, the kernel shares equally.
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), reader_nice);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !unread_.empty(); });
    if (ends_) return;
    auto queue = unread_.upper_bound(last_tenant_);
    if (queue == unread_.end()) queue = unread_.begin();
    last_tenant_ = queue->first;
    UnreadRequest request = std::move(queue->second.front());
    const std::size_t bytes = request.bytes();
    queue->second.pop_front();
    if (queue->second.empty()) unread_.erase(queue);
    lock.unlock();
    Result<ReadRequest> read = read_request(model_, request);
    lock.lock();
    std::size_t& held = bytes_[request.tenant()];
    held -= std::min(held, bytes);
    if (held == 0) bytes_.erase(request.tenant());
    done_.push_back({std::move(request), std::move(read)});
    const std::uint64_t one = 1;
    (void)!write(wake_, &one, sizeof one);
  }
}

}  // namespace loam::serve
