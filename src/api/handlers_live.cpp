// What is watched as it changes: logs, a task, the top view. Each stream is a LiveStream that
// looks again whenever it is stepped.
#include <algorithm>

#include "api/handlers.hpp"
#include "api/log_piece.hpp"

namespace loam::api::handlers {
namespace {

constexpr Duration live_line_interval = Duration::seconds(1);
// Below the minute after which middle boxes take a silent connection for dead.
constexpr Duration silence_max = Duration::seconds(15);
// A busy journal wakes the ticker often; a stream that it says nothing of does not join in.
constexpr Duration step_interval_min{50};
// Pieces one stream sends in one step, so that no reader of a huge log keeps the others waiting.
constexpr int pieces_a_step = 16;

class EventStream : public LiveStream {
 public:
  EventStream(const CallPtr& call, http::Stream stream)
      : core_(call->core), stream_(std::move(stream)) {
    call->core->metrics.on_request(200);
  }

  bool step(const Look& look) final {
    if (stream_.closed()) return false;
    if (!look.changed && !hurry_ && look.now - now_ < step_interval_min) return true;
    now_ = look.now;
    hurry_ = false;
    if (!look_again(look)) return false;
    if (now_ - sent_at_ >= silence_max && stream_.send_comment("still here") == http::Sent::queued)
      sent_at_ = now_;
    return !stream_.closed();
  }

 protected:
  virtual bool look_again(const Look& look) = 0;

  http::Sent send(const char* type, std::string json, std::string id = {}) {
    const http::Sent sent = stream_.send({type, std::move(json), std::move(id)});
    if (sent == http::Sent::queued) {
      sent_at_ = now_;
    } else if (sent == http::Sent::full) {
      hurry_ = true;
      stream_.on_writable([weak = std::weak_ptr<ApiCore>(core_)] {
        if (const auto core = weak.lock()) core->live.wake();
      });
    }
    return sent;
  }
  // There is more to send than this step took.
  void go_on() {
    hurry_ = true;
    core_->live.wake();
  }
  // The last event: what went wrong.
  bool end_with(const Error& error) {
    send("problem", to_json(problem_of(error)));
    stream_.finish();
    return false;
  }

  const std::shared_ptr<ApiCore> core_;
  http::Stream stream_;

 private:
  Instant now_;  // of the last step
  Instant sent_at_;
  bool hurry_ = false;
};

// Sends a log from an offset on.
class LogPump {
 public:
  LogPump(LogStream stream, std::int64_t offset) : stream_(stream), offset_(offset) {}

  enum class Got { more, all, full, closed };
  // Sends what there is; `send` takes the JSON. With `last` nothing is held back.
  template <class Send>
  Result<Got> pump(ApiCore& core, TaskId task, bool last, const Send& send) {
    for (int i = 0; i < pieces_a_step; ++i) {
      LOAM_TRY(piece, core.backend.read_log(task, stream_, offset_, core.options.log_bytes_max));
      ended_ = piece.ended;
      const bool empty = piece.bytes.empty() && piece.offset == offset_;
      if (empty) return Got::all;
      const std::int64_t end = piece.next_offset;
      const LogView view = view_of(stream_, offset_, std::move(piece), last);
      ended_ = ended_ && view.next_offset == end;
      if (view.data.empty() && view.offset == offset_) return Got::all;
      const std::int64_t before = std::exchange(offset_, view.next_offset);
      switch (send(to_json(view))) {
        case http::Sent::queued:
          break;
        case http::Sent::full:
          offset_ = before;
          return Got::full;
        case http::Sent::closed:
          return Got::closed;
      }
    }
    return Got::more;
  }
  std::int64_t offset() const { return offset_; }
  bool ended() const { return ended_; }

 private:
  LogStream stream_;
  std::int64_t offset_;
  bool ended_ = false;
};

class LogFollower final : public EventStream {
 public:
  LogFollower(const CallPtr& call, http::Stream stream, TaskId task, LogStream which,
              std::int64_t offset)
      : EventStream(call, std::move(stream)), task_(task), pump_(which, offset) {}

  TaskId task() const override { return task_; }

 protected:
  bool look_again(const Look& look) override {
    // First whether it is over, then what is left of it.
    if (look.changed || look.now - asked_at_ >= live_line_interval) {
      asked_at_ = look.now;
      auto record = core_->backend.task(task_);
      if (!record) return end_with(record.error());
      finished_ = !*record || (*record)->state == TaskState::finished;
    }
    const auto got = pump_.pump(*core_, task_, finished_, [&](std::string json) {
      return send("log", std::move(json), std::to_string(pump_.offset()));
    });
    if (!got) return end_with(got.error());
    if (*got == LogPump::Got::more) go_on();
    if (*got == LogPump::Got::all && (finished_ || pump_.ended())) {
      stream_.finish();
      return false;
    }
    return *got != LogPump::Got::closed;
  }

 private:
  TaskId task_;
  LogPump pump_;
  Instant asked_at_;
  bool finished_ = false;
};

class TaskWatch final : public EventStream {
 public:
  TaskWatch(const CallPtr& call, http::Stream stream, TaskId task, bool logs, std::int64_t out,
            std::int64_t err)
      : EventStream(call, std::move(stream)),
        task_(task),
        logs_(logs),
        out_(LogStream::out, out),
        err_(LogStream::err, err) {}

  TaskId task() const override { return task_; }

 protected:
  bool look_again(const Look& look) override {
    if (!finished_ && (look.changed || look.now - looked_at_ >= live_line_interval)) {
      looked_at_ = look.now;
      auto fresh = fetch();
      if (!fresh) return end_with(fresh.error());
      finished_ = fresh->state == "finished";
      view_ = to_json(*fresh);
    }
    if (logs_) {
      // Everything a finished task said comes before the event that it has finished.
      for (LogPump* pump : {&out_, &err_}) {
        const auto got = pump->pump(*core_, task_, finished_, [&](std::string json) {
          return send("log", std::move(json), log_id());
        });
        if (!got) return end_with(got.error());
        if (*got == LogPump::Got::closed) return false;
        if (*got != LogPump::Got::all && finished_) {
          if (*got == LogPump::Got::more) go_on();
          return true;
        }
      }
    }
    if (view_ != sent_) {
      switch (send("task", view_, logs_ ? log_id() : std::string())) {
        case http::Sent::queued:
          sent_ = view_;
          break;
        case http::Sent::full:
          return true;
        case http::Sent::closed:
          return false;
      }
    }
    if (!finished_) return true;
    stream_.finish();
    return false;
  }

 private:
  Result<TaskView> fetch() {
    LOAM_TRY(record, core_->backend.task(task_));
    if (!record) return no_task(task_.text());
    std::vector<TaskRecord> records;
    records.push_back(std::move(*record));
    LOAM_TRY(views, task_views(*core_, std::move(records)));
    return std::move(views.front());
  }
  std::string log_id() const {
    return std::to_string(out_.offset()) + "-" + std::to_string(err_.offset());
  }

  TaskId task_;
  bool logs_;
  LogPump out_;
  LogPump err_;
  Instant looked_at_;
  std::string view_;
  std::string sent_;
  bool finished_ = false;
};

class TopWatch final : public EventStream {
 public:
  TopWatch(const CallPtr& call, http::Stream stream, std::optional<TenantId> only)
      : EventStream(call, std::move(stream)), only_(only) {}

 protected:
  bool look_again(const Look& look) override {
    if (!look.changed && look.now - looked_at_ < live_line_interval) return true;
    looked_at_ = look.now;
    // A reader too slow for this one gets the next.
    return send("top", to_json(top_view(*core_, only_))) != http::Sent::closed;
  }

 private:
  std::optional<TenantId> only_;
  Instant looked_at_;
};

Result<bool> flag(const Call& call, std::string_view name) {
  const std::string text = call.query(name);
  if (text == "true") return call.request.method != http::Method::head;
  if (text.empty() || text == "false") return false;
  return invalid("'" + std::string(name) + "' is '" + text + "'", "use true or false");
}

constexpr std::int64_t offset_max = std::int64_t{1} << 60;

Error bad_event_id(std::string_view text) {
  return invalid("Last-Event-ID is '" + std::string(text) + "'",
                 "send the id of the last event that came");
}

Result<std::int64_t> parse_offset(std::string_view text) {
  const auto value = parse_decimal(text, 0, offset_max, "offset");
  if (!value) return bad_event_id(text);
  return *value;
}

}  // namespace

void task_logs(const CallPtr& call) {
  const auto start = [&]() -> Result<void> {
    LOAM_TRY(record, call->task(call->parameter("id")));
    const std::string name = call->query("stream");
    const auto which = name.empty() ? LogStream::out : parse_log_stream(name);
    if (!which) return invalid("'stream' is '" + name + "'", "use stdout or stderr");
    LOAM_TRY(offset, call->number("offset", 0, offset_max));
    LOAM_TRY(follow, flag(*call, "follow"));
    if (!follow) {
      LOAM_TRY(piece, call->backend().read_log(record.id, *which, offset,
                                               call->core->options.log_bytes_max));
      call->answer(to_json(view_of(*which, offset, std::move(piece), true)));
      return {};
    }
    if (const std::string* id = call->request.headers.find("Last-Event-ID")) {
      LOAM_TRY(last, parse_offset(*id));
      offset = last;
    }
    call->core->live.add(std::make_shared<LogFollower>(call, call->responder.begin_events(),
                                                       record.id, *which, offset));
    return {};
  };
  if (const auto started = start(); !started) call->fail(started.error());
}

void task_events(const CallPtr& call) {
  const auto start = [&]() -> Result<void> {
    LOAM_TRY(record, call->task(call->parameter("id")));
    LOAM_TRY(logs, flag(*call, "logs"));
    LOAM_TRY(out, call->number("stdout_offset", 0, offset_max));
    LOAM_TRY(err, call->number("stderr_offset", 0, offset_max));
    if (const std::string* id = call->request.headers.find("Last-Event-ID");
        id != nullptr && logs) {
      const std::size_t dash = id->find('-');
      if (dash == std::string::npos) return bad_event_id(*id);
      LOAM_TRY(last_out, parse_offset(std::string_view(*id).substr(0, dash)));
      LOAM_TRY(last_err, parse_offset(std::string_view(*id).substr(dash + 1)));
      out = last_out;
      err = last_err;
    }
    call->core->live.add(std::make_shared<TaskWatch>(call, call->responder.begin_events(),
                                                     record.id, logs, out, err));
    return {};
  };
  if (const auto started = start(); !started) call->fail(started.error());
}

void top(const CallPtr& call) {
  const auto start = [&]() -> Result<void> {
    LOAM_TRY(only, call->tenant_filter({}));
    const auto id = only ? std::optional(only->id) : std::nullopt;
    LOAM_TRY(follow, flag(*call, "follow"));
    if (!follow) {
      call->answer(to_json(top_view(*call->core, id)));
      return {};
    }
    call->core->live.add(std::make_shared<TopWatch>(call, call->responder.begin_events(), id));
    return {};
  };
  if (const auto started = start(); !started) call->fail(started.error());
}

}  // namespace loam::api::handlers
