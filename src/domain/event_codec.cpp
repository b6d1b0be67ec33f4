#include "domain/event_codec.hpp"

#include "domain/json_codec.hpp"

namespace loam {

namespace json {

Result<bj::value> parse_document(std::string_view text) {
  boost::system::error_code fault;
  bj::stream_parser parser;
  std::size_t used = parser.write_some(text.data(), text.size(), fault);
  if (!fault) parser.finish(fault);
  if (!fault && used == text.size()) return parser.release();
  std::size_t line = 1;
  std::size_t column = 1;
  for (std::size_t i = 0; i < used && i < text.size(); ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    line += text[i] == '\n' ? 1 : 0;
  }
  const std::string what = fault ? fault.message() : std::string("text after the document");
  return invalid("not JSON: " + what + " near line " + std::to_string(line) + ", column " +
                 std::to_string(column));
}

}  // namespace json

namespace {

Error unknown_event(const EncodedEvent& encoded) {
  return Error{ErrorKind::unsupported,
               "the journal holds an event '" + encoded.type + "' version " +
                   std::to_string(encoded.version) + " that this program does not know",
               "it was written by a newer loam: run that version"};
}

template <class T>
bool decode_as(const EncodedEvent& encoded, Result<Event>& out) {
  if (encoded.type != T::type) return false;
  // Every type is still at version 1: nothing to lift yet.
  if (encoded.version != T::version) return false;
  auto event = json::from_document<T>(encoded.payload, json::Missing::is_error, ErrorKind::corrupt);
  if (event) {
    out = Event(std::move(*event));
  } else {
    out = Error{ErrorKind::corrupt,
                "event '" + encoded.type + "' cannot be read: " + event.error().message,
                {}};
  }
  return true;
}

template <class... T>
Result<Event> decode_any(const EncodedEvent& encoded, const std::variant<T...>*) {
  Result<Event> out = unknown_event(encoded);
  static_cast<void>((decode_as<T>(encoded, out) || ...));
  return out;
}

}  // namespace

std::string_view type_of(const Event& event) {
  return std::visit([](const auto& e) -> std::string_view { return e.type; }, event);
}

EncodedEvent encode(const Event& event) {
  return std::visit(
      [](const auto& e) {
        return EncodedEvent{e.type, e.version, json::to_document(e)};
      },
      event);
}

Result<Event> decode(const EncodedEvent& encoded) {
  return decode_any(encoded, static_cast<const Event*>(nullptr));
}

}  // namespace loam
