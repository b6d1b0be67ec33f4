#include "app/loam/logs.hpp"

#include <limits>

#include "api/log_piece.hpp"
#include "app/loam/human.hpp"
#include "base/quantity.hpp"

namespace loam::cli {
namespace {

// One stream from `offset` to its present end, in pieces.
Result<void> print_stream(api::Client& client, const std::string& id, const std::string& stream,
                          std::int64_t offset,
                          const std::function<void(const api::LogChunk&)>& each) {
  for (;;) {
    LOAM_TRY(chunk, client.logs(id, stream, offset));
    each(chunk);
    if (chunk.bytes.empty() || chunk.ended || chunk.next_offset <= offset) return {};
    offset = chunk.next_offset;
  }
}

Result<void> follow_both(Session& session, api::Client& client, const std::string& id) {
  api::WatchOptions options;
  options.logs = true;
  api::WatchEvents events;
  RotatedAway missing;
  events.on_log = [&](const api::LogChunk& chunk) {
    missing.see(chunk);
    (chunk.stream == "stdout" ? session.out() : session.console().err) << chunk.bytes << std::flush;
  };
  events.on_lost = [said = false, &session](const Error&) mutable {
    if (!said) session.say("loamd does not answer; waiting for it");
    said = true;
  };
  LOAM_CHECK(client.watch(id, options, events));
  if (const std::string words = missing.words(id); !words.empty()) session.say(words);
  return {};
}

// The whole output as one document, a LogView for each stream.
Result<int> print_json(Session& session, api::Client& client, const std::string& id,
                       const std::vector<std::string>& streams, std::int64_t offset) {
  std::string document = "{";
  for (const std::string& stream : streams) {
    api::LogPiece all;
    all.offset = offset;
    all.next_offset = offset;
    LOAM_CHECK(print_stream(client, id, stream, offset, [&](const api::LogChunk& chunk) {
      if (all.bytes.empty()) all.offset = chunk.offset;
      all.bytes += chunk.bytes;
      all.next_offset = chunk.next_offset;
      all.ended = chunk.ended;
    }));
    const api::LogStream which = *api::parse_log_stream(stream);
    const api::LogView view = api::view_of(which, offset, std::move(all), true);
    document += (document.size() == 1 ? "\"" : ",\"") + stream + "\":" + api::to_json(view);
  }
  session.out() << document << "}\n";
  return 0;
}

}  // namespace

void RotatedAway::see(const api::LogChunk& chunk) {
  Stream& stream = streams_[chunk.stream];
  if (chunk.truncated && chunk.offset > stream.next) stream.missing += chunk.offset - stream.next;
  stream.next = chunk.next_offset;
}

std::string RotatedAway::words(const std::string& task) const {
  std::string text;
  for (const auto& [name, stream] : streams_) {
    if (stream.missing == 0) continue;
    text += (text.empty() ? "" : "; ") + std::to_string(stream.missing) + " bytes of " + name;
  }
  return text.empty() ? text
                      : text + " of " + task + " were rotated away before they could be read";
}

Result<int> run_logs(Session& session, const Arguments& arguments) {
  const std::string id = arguments.operand(0);
  const std::string one = arguments.text("stream");
  std::int64_t offset = 0;
  if (arguments.has("offset")) {
    if (one.empty()) return invalid("--offset needs --stream", "add --stream stdout");
    LOAM_TRY(value, parse_decimal(arguments.text("offset"), 0,
                                  std::numeric_limits<std::int64_t>::max() / 2, "number of bytes"));
    offset = value;
  }
  LOAM_TRY(client, session.client());
  const std::vector<std::string> streams =
      one.empty() ? std::vector<std::string>{"stdout", "stderr"} : std::vector<std::string>{one};
  RotatedAway missing;
  bool any = false;
  const auto write = [&](const api::LogChunk& chunk) {
    any = any || !chunk.bytes.empty();
    missing.see(chunk);
    (chunk.stream == "stdout" ? session.out() : session.console().err) << chunk.bytes << std::flush;
  };
  if (session.json()) return print_json(session, *client, id, streams, offset);
  if (arguments.has("follow") && one.empty()) {
    LOAM_CHECK(follow_both(session, *client, id));
    return 0;
  }
  if (arguments.has("follow")) {
    LOAM_CHECK(client->follow_logs(id, one, offset, [&](const api::LogChunk& chunk) {
      write(chunk);
      return true;
    }));
    return 0;
  }
  for (const std::string& stream : streams)
    LOAM_CHECK(print_stream(*client, id, stream, offset, write));
  if (const std::string words = missing.words(id); !words.empty()) session.say(words);
  if (any) return 0;
  LOAM_TRY(task, client->task(id));
  if (task.outcome == "refused" || task.outcome == "unable") {
    session.say(id + " wrote nothing, for it never ran: " + printable(task.reason));
  }
  return 0;
}

}  // namespace loam::cli
