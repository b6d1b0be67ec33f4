#include "app/loam/chat.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace loam::cli {
namespace {

namespace json = boost::json;

const json::value* inside(const json::value& value, std::string_view name) {
  const json::object* object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains(name);
}

std::string text_in(const json::value* value) {
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string() : std::string(*text);
}

std::int64_t number_in(const json::value* value) {
  const std::int64_t* number = value == nullptr ? nullptr : value->if_int64();
  return number == nullptr ? 0 : *number;
}

// The message of {"error":{"message":...}}; empty where there is none.
std::string message_of(const json::value& value) {
  const json::value* error = inside(value, "error");
  return error == nullptr ? std::string() : text_in(inside(*error, "message"));
}

ErrorKind kind_of(int status) {
  switch (status) {
    case 400:
    case 413:
      return ErrorKind::invalid_argument;
    case 401:
      return ErrorKind::unauthenticated;
    case 403:
      return ErrorKind::permission_denied;
    case 404:
      return ErrorKind::not_found;
    case 429:
      return ErrorKind::exhausted;
    case 502:
    case 503:
      return ErrorKind::unavailable;
    default:
      return ErrorKind::internal;
  }
}

}  // namespace

std::string chat_body(const ChatOptions& options, const std::vector<ChatTurn>& turns) {
  json::array messages;
  for (const ChatTurn& turn : turns)
    messages.push_back(json::object{{"role", turn.role}, {"content", turn.content}});
  json::object body{{"model", options.model},
                    {"messages", std::move(messages)},
                    {"stream", true},
                    {"stream_options", json::object{{"include_usage", true}}}};
  if (options.tokens_max > 0) body["max_completion_tokens"] = options.tokens_max;
  if (!options.temperature.empty()) body["temperature"] = json::parse(options.temperature);
  return json::serialize(body);
}

Result<ChatPiece> read_chat_piece(std::string_view data) {
  ChatPiece piece;
  if (data == "[DONE]") {
    piece.is_done = true;
    return piece;
  }
  boost::system::error_code fault;
  const json::value event = json::parse(data, fault);
  if (fault || !event.is_object()) {
    return Error{ErrorKind::corrupt, "the answer is no stream of a chat",
                 "check that the address is a gateway's"};
  }
  if (const std::string message = message_of(event); !message.empty())
    return Error{ErrorKind::unavailable, message, {}};
  const json::value* choices = inside(event, "choices");
  const json::array* list = choices == nullptr ? nullptr : choices->if_array();
  if (list != nullptr && !list->empty()) {
    const json::value* delta = inside(list->front(), "delta");
    if (delta != nullptr) piece.text = text_in(inside(*delta, "content"));
  }
  if (const json::value* usage = inside(event, "usage"); usage != nullptr && usage->is_object()) {
    const json::value* details = inside(*usage, "prompt_tokens_details");
    piece.usage =
        ChatPiece::Usage{number_in(inside(*usage, "prompt_tokens")),
                         details == nullptr ? 0 : number_in(inside(*details, "cached_tokens")),
                         number_in(inside(*usage, "completion_tokens"))};
  }
  return piece;
}

Error chat_error(int status, std::string_view body) {
  boost::system::error_code fault;
  const json::value value = json::parse(body, fault);
  std::string message = fault ? std::string() : message_of(value);
  if (message.empty()) message = "the gateway answered " + std::to_string(status);
  return Error{kind_of(status), std::move(message), {}};
}

}  // namespace loam::cli
