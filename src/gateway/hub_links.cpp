// The engines' side of the hub: connecting, greeting, health, and frames on their way to the
// requests they belong to.
#include <sys/epoll.h>

#include <algorithm>
#include <variant>

#include "base/assert.hpp"
#include "gateway/hub.hpp"

namespace loam::gateway {

namespace wire = infer::wire;

namespace {

std::chrono::milliseconds chrono_ms(Duration duration) {
  return std::chrono::milliseconds(duration.ms);
}

}  // namespace

void Hub::offer(Endpoint endpoint) {
  const std::string name = endpoint.model;
  models_[name].endpoint = std::move(endpoint);
}

void Hub::withdraw(const std::string& model) {
  const auto found = models_.find(model);
  if (found == models_.end()) return;
  std::vector<std::string> names;
  for (const LinkId id : found->second.links) names.push_back(links_.at(id)->name);
  for (const std::string& name : names) remove_instance(name);
  models_.erase(found);
  for (const auto& [id, job] : jobs_) {
    if (job->model == model && !job->is_over)
      fail(*job, {404, "The model " + model + " was withdrawn.", "invalid_request_error", "model",
                  "model_not_found"});
  }
}

void Hub::add_instance(std::string name, std::string model, std::string path) {
  const auto found = models_.find(model);
  if (found == models_.end()) return;  // withdrawn meanwhile
  const LinkId id = ++last_link_;
  auto link = std::make_unique<Link>(id, std::move(name), std::move(model), std::move(path));
  link->pause = settings.reconnect_min;
  found->second.links.insert(id);
  Link& added = *link;
  links_.emplace(id, std::move(link));
  connect(added);
}

void Hub::drain_instance(const std::string& name, std::function<void()> done) {
  for (const auto& [id, link] : links_) {
    if (link->name != name) continue;
    link->is_draining = true;
    link->when_drained = std::move(done);
    return check_drained(*link);
  }
  if (done) done();
}

void Hub::remove_instance(const std::string& name) {
  const auto found = std::find_if(links_.begin(), links_.end(),
                                  [&](const auto& entry) { return entry.second->name == name; });
  if (found == links_.end()) return;
  Link& link = *found->second;
  link.is_draining = true;  // so that nothing is tried here again
  lose(link);
  if (link.when_drained) std::exchange(link.when_drained, nullptr)();
  if (const auto model = models_.find(link.model); model != models_.end())
    model->second.links.erase(link.id);
  links_.erase(found);
}

void Hub::check_drained(Link& link) {
  if (link.is_draining && link.flights.empty() && link.when_drained)
    std::exchange(link.when_drained, nullptr)();
}

bool Hub::is_silent(const Link& link) const {
  return now_ - link.heard_at > chrono_ms(settings.silence_max);
}

bool Hub::accepts(const Link& link) const {
  return link.is_up && !link.is_draining && !link.is_broken && !is_silent(link);
}

InstanceReport::State Hub::state_of(const Link& link) const {
  if (link.is_draining) return InstanceReport::State::draining;
  if (!link.wire.open()) return InstanceReport::State::down;
  if (!link.is_up) return InstanceReport::State::starting;
  return is_silent(link) ? InstanceReport::State::silent : InstanceReport::State::up;
}

void Hub::watch(Link& link, bool add) {
  epoll_event event{};
  event.events = EPOLLIN | (link.wire.wants_write() ? static_cast<std::uint32_t>(EPOLLOUT) : 0U);
  event.data.u64 = link.id;
  link.wants_write = link.wire.wants_write();
  if (::epoll_ctl(epoll_, add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, link.wire.fd(), &event) != 0)
    link.is_broken = true;
}

void Hub::connect(Link& link) {
  link.heard_at = now_;
  link.ask_at = now_ + chrono_ms(settings.stats_interval);
  if (!link.wire.connect().ok()) {
    link.connect_at = now_ + chrono_ms(link.pause);
    link.pause = std::min(link.pause * 2, settings.reconnect_max);
    return;
  }
  link.is_broken = false;
  watch(link, true);
  send(link, wire::Hello{wire::protocol_version, "loam-gateway"});
}

// A failure is only noted: the connection is closed at the end of the turn, when nobody reads from
// it any more.
void Hub::send(Link& link, const wire::Frame& frame) {
  if (link.is_broken || !link.wire.open()) return;
  if (!link.wire.send(frame).ok()) {
    link.is_broken = true;
  } else if (link.wire.wants_write() != link.wants_write) {
    watch(link, false);
  }
}

// The connection's end: what had not begun is tried elsewhere.
void Hub::lose(Link& link) {
  link.wire.close();  // which also ends the watch
  link.is_broken = false;
  link.is_up = false;
  link.stats = {};
  link.trail.forget();
  link.tokens_promised = 0;
  link.connect_at = now_ + chrono_ms(link.pause);
  link.pause = std::min(link.pause * 2, settings.reconnect_max);
  const auto flights = std::exchange(link.flights, {});
  std::vector<std::pair<wire::StreamId, Flight>> ordered(flights.begin(), flights.end());
  std::sort(ordered.begin(), ordered.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [stream, flight] : ordered) lose_part(flight, link);
  check_drained(link);
}

void Hub::on_link_event(LinkId id, std::uint32_t events) {
  const auto found = links_.find(id);
  if (found == links_.end() || !found->second->wire.open()) return;
  Link& link = *found->second;
  if ((events & EPOLLOUT) != 0) {
    if (!link.wire.flush().ok()) link.is_broken = true;
    if (!link.is_broken && link.wire.wants_write() != link.wants_write) watch(link, false);
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0 || link.is_broken) return;
  const bool ended = !link.wire.receive().ok();
  const bool was_silent = is_silent(link);
  link.heard_at = now_;
  if (was_silent && !ended) tend_waiting(&link.model);
  // What came before the end still counts.
  while (!link.is_broken) {
    auto frame = link.wire.next_frame();
    if (!frame.ok()) link.is_broken = true;
    if (!frame.ok() || !frame->has_value()) break;
    take_frame(link, **frame);
  }
  if (ended) link.is_broken = true;
}

Hub::Flight* Hub::find_flight(Link& link, wire::StreamId stream) {
  const auto found = link.flights.find(stream);
  return found == link.flights.end() ? nullptr : &found->second;
}

Hub::Flight Hub::end_flight(Link& link, wire::StreamId stream) {
  const auto found = link.flights.find(stream);
  const Flight flight = found->second;
  link.flights.erase(found);
  Part& part = flight.job->parts[flight.part];
  link.tokens_promised -= std::min(link.tokens_promised, part.tokens);
  part.link = 0;
  --flight.job->parts_out;
  return flight;
}

void Hub::take_frame(Link& link, wire::Frame& frame) {
  // A frame for a stream that is over here is of no interest; one that only clients send, a fault.
  if (auto* chunk = std::get_if<wire::Chunk>(&frame)) {
    if (const Flight* flight = find_flight(link, chunk->stream)) take_text(*flight, *chunk);
  } else if (const auto* accepted = std::get_if<wire::Accepted>(&frame)) {
    if (const Flight* flight = find_flight(link, accepted->stream))
      flight->job->parts[flight->part].prompt_tokens = accepted->prompt_tokens;
  } else if (const auto* done = std::get_if<wire::ChoiceDone>(&frame)) {
    if (const Flight* flight = find_flight(link, done->stream)) take_choice_end(*flight, *done);
  } else if (auto* embedding = std::get_if<wire::Embedding>(&frame)) {
    if (const Flight* flight = find_flight(link, embedding->stream))
      take_embedding(*flight, *embedding);
  } else if (const auto* finished = std::get_if<wire::Finished>(&frame)) {
    if (find_flight(link, finished->stream) != nullptr)
      take_end(link, end_flight(link, finished->stream), *finished);
    check_drained(link);
  } else if (const auto* failed = std::get_if<wire::Failed>(&frame)) {
    if (failed->stream == 0) {
      link.is_broken = true;
    } else if (find_flight(link, failed->stream) != nullptr) {
      take_failure(link, end_flight(link, failed->stream), *failed);
    }
    check_drained(link);
  } else if (auto* greeting = std::get_if<wire::Welcome>(&frame)) {
    welcome(link, *greeting);
  } else if (auto* stats = std::get_if<wire::Stats>(&frame)) {
    link.stats = std::move(*stats);
  } else if (!std::holds_alternative<wire::Drained>(frame) &&
             !std::holds_alternative<wire::Tokens>(frame)) {
    link.is_broken = true;
  }
}

void Hub::welcome(Link& link, wire::Welcome& welcome) {
  // An instance that serves something else must not be mistaken for this model.
  if (link.is_up || welcome.version != wire::protocol_version || welcome.model != link.model) {
    link.is_broken = true;
    return;
  }
  link.welcome = std::move(welcome);
  link.is_up = true;
  link.pause = settings.reconnect_min;
  send(link, wire::AskStats{});
  tend_waiting(&link.model);
}

void Hub::tend_links() {
  for (const auto& [id, link] : links_) {
    if (!link->wire.open()) {
      if (now_ >= link->connect_at) connect(*link);
      continue;
    }
    if (now_ - link->heard_at > 3 * chrono_ms(settings.silence_max)) link->is_broken = true;
    if (now_ < link->ask_at) continue;
    link->ask_at = now_ + chrono_ms(settings.stats_interval);
    if (link->is_up) send(*link, wire::AskStats{});
  }
  // Losing one may break another, on which its requests are tried.
  for (bool again = true; again;) {
    again = false;
    for (const auto& [id, link] : links_) {
      if (!link->is_broken) continue;
      lose(*link);
      again = true;
    }
  }
}

}  // namespace loam::gateway
