// What a command works with: the streams, what applies to every command, and the daemon.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "api/client.hpp"
#include "app/loam/command.hpp"
#include "app/loam/table.hpp"

namespace loam::cli {

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool colour = false;      // on `out`
  bool err_colour = false;  // on `err`
  std::size_t columns = 0;  // of the terminal behind `out`; 0: it is none, so lines may be long
};

// Reads one environment variable; empty where it is not set.
using Environment = std::function<std::string(const char* name)>;

class Session {
 public:
  Session(Console& console, Environment environment, const Arguments& arguments);

  Console& console() { return console_; }
  std::ostream& out() { return console_.out; }
  std::string variable(const char* name) const { return environment_(name); }

  bool json() const { return json_; }
  // The document goes to a file: what is printed is for people again.
  void keep_json_off() { json_ = false; }
  bool quiet() const { return quiet_; }
  std::size_t width() const { return console_.columns; }
  std::string text_of(const Table& table) const { return table.text(console_.colour, width()); }

  // A remark for people, on the error stream; nothing with --quiet.
  void say(const std::string& line);
  // Prints a shape's JSON as one document.
  template <class View>
  int print_json(const View& view) {
    console_.out << api::to_json(view) << "\n";
    return 0;
  }

  // --tenant, else LOAM_TENANT, else empty.
  std::string tenant() const { return tenant_; }

  // The connection, made at the first use. Its error says which address was tried and how to start
  // the daemon.
  Result<api::Client*> client();
  // One more connection, for use by another thread.
  Result<api::Client> second_client() const;
  std::string address() const { return address_; }

 private:
  Console& console_;
  Environment environment_;
  std::string address_;
  std::string token_;
  std::string key_;
  std::string tenant_;
  bool json_ = false;
  bool quiet_ = false;
  std::unique_ptr<api::Client> client_;
};

// Where loamd listens when nobody says otherwise.
std::string default_address(const Environment& environment, bool root);
// Where loamd keeps its journal when nobody says otherwise.
std::string default_data_folder(const Environment& environment, bool root);

}  // namespace loam::cli
