// A task's request in the user's words: options and a file to the API's TaskRequest. Quantities
// are read here too, so that a slip is told before anybody is asked.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/loam/command.hpp"
#include "app/loam/session.hpp"

namespace loam::cli {

// The options that describe a task, grouped for help; shared by quote, run and submit.
std::vector<OptionGroup> request_options();

// Reads --file first, then the options over it. Errors name the option and the value.
Result<api::TaskRequest> request_of(const Session& session, const Arguments& arguments);

// Those of --tag, into `tags`.
Result<void> take_tags(const Arguments& arguments, std::map<std::string, std::string>& tags);

// The same of a reservation.
std::vector<OptionGroup> reservation_options();
Result<api::ReservationRequest> reservation_of(const Session& session, const Arguments& arguments);

// A quote in three numbers a person understands, what would be given, and the defaults that were
// filled in.
std::string quote_text(const api::QuoteView& quote, const Arguments& arguments,
                       const api::TaskRequest& asked, bool colour);
// Whether the folder that one is in is mounted because the program is in it.
bool has_own_folder(const Arguments& arguments, const api::TaskRequest& request);
// The same in one line.
std::string quote_line(const api::QuoteView& quote);

}  // namespace loam::cli
