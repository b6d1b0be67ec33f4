// What the client's files share: its connection, and how paths and keys are made. Internal to this
// folder.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "api/client.hpp"
#include "api/problem.hpp"
#include "http/address.hpp"

namespace loam::api {

using http::Method;

// Random.
std::string fresh_key();
// One segment of a path: nothing that would name another resource.
Result<std::string> segment(const char* what, const std::string& text);
// Nothing where the value is empty.
void add_query(http::Request& request, const char* name, const std::string& value);
Error not_understood(const Error& error);

struct Client::Core {
  Core(const http::Address& given_address, const ConnectOptions& options, std::string given_token)
      : address(given_address),
        client(given_address, options.http),
        token(std::move(given_token)) {}

  http::Address address;
  http::ClientOptions http_options;
  http::Client client;
  std::string token;
  std::string key;
  std::int64_t keyed_writes = 0;

  http::Request request(Method method, std::string path, std::string body = {}) const {
    http::Request made;
    made.method = method;
    made.path = std::move(path);
    made.body = std::move(body);
    if (!made.body.empty()) made.headers.set("Content-Type", "application/json");
    if (!token.empty()) made.headers.set("Authorization", "Bearer " + token);
    return made;
  }

  Result<std::string> text(const http::Request& request) {
    LOAM_TRY(response, client.send(request));
    if (response.status / 100 != 2) return error_of(response);
    return std::move(response.body);
  }

  template <class View>
  Result<View> call(const http::Request& request) {
    LOAM_TRY(body, text(request));
    auto view = from_json<View>(body);
    if (!view) return not_understood(view.error());
    return view;
  }
  // For what takes as long as a disk or a driver does: silence is no sign of death.
  template <class View>
  Result<View> patient_call(const http::Request& request) {
    http::ClientOptions options = http_options;
    options.answer_timeout = Duration::hours(1);
    http::Client patient(address, options);
    std::swap(client, patient);
    auto view = call<View>(request);
    std::swap(client, patient);
    return view;
  }
  template <class View>
  Result<View> get(std::string path) {
    return call<View>(request(Method::get, std::move(path)));
  }
  // Of the caller, with the number of the write; else random.
  std::string next_key() {
    if (key.empty()) return fresh_key();
    return ++keyed_writes == 1 ? key : key + "/" + std::to_string(keyed_writes);
  }
  http::Request keyed(Method method, std::string path, std::string body = {},
                      const std::string& own_key = {}) {
    http::Request made = request(method, std::move(path), std::move(body));
    made.headers.set("Idempotency-Key", own_key.empty() ? next_key() : own_key);
    return made;
  }
  template <class View>
  Result<View> write(Method method, std::string path, std::string body,
                     const std::string& own_key = {}) {
    return call<View>(keyed(method, std::move(path), std::move(body), own_key));
  }

  // Gives events to `on_event`; its error, or a `problem` event, ends the stream.
  Result<http::StreamEnd> stream(const http::Request& request,
                                 const std::function<Result<bool>(const http::SseEvent&)>& on_event,
                                 const http::Canceller* canceller) {
    std::optional<Error> fault;
    LOAM_TRY(end, client.stream(
                      request,
                      [&](const http::SseEvent& event) {
                        Result<bool> go_on = true;
                        if (event.type == "problem") {
                          const auto problem = from_json<Problem>(event.data);
                          go_on = problem ? error_of(*problem) : not_understood(problem.error());
                        } else {
                          go_on = on_event(event);
                        }
                        if (go_on) return *go_on;
                        fault = go_on.error();
                        return false;
                      },
                      canceller));
    if (fault) return *fault;
    if (end.how == http::StreamEnd::How::refused) return error_of(end.response);
    return end;
  }
};

}  // namespace loam::api
