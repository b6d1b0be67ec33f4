#include "app/loam/request.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "app/loam/commands.hpp"
#include "app/loam/human.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"
#include "billing/attribution.hpp"
#include "domain/task.hpp"
#include "http/target.hpp"

namespace loam::cli {
namespace {

using Kind = Option::Kind;

constexpr const char* whole_device_text = "1";  // what a request that says nothing asks for

// The parsers name the part that is off; `text` is what was typed.
Error of_option(const std::string& option, const std::string& text, const Error& error) {
  const bool named = error.message.find(text) != std::string::npos;
  return {error.kind, "--" + option + (named ? ": " : " '" + text + "': ") + error.message,
          error.next_step};
}

// The value of an option that `parse` accepts.
template <class Parse>
Result<void> take(const Arguments& arguments, const std::string& option,
                  std::optional<std::string>& out, Parse parse) {
  if (!arguments.has(option)) return {};
  const std::string text = arguments.text(option);
  if (const auto value = parse(text); !value) return of_option(option, text, value.error());
  out = text;
  return {};
}

void take(const Arguments& arguments, const std::string& option, std::string& out) {
  if (arguments.has(option)) out = arguments.text(option);
}

Result<void> take_count(const Arguments& arguments, const std::string& option, std::int64_t low,
                        std::int64_t high, std::int64_t& out) {
  if (!arguments.has(option)) return {};
  const auto value = parse_decimal(arguments.text(option), 0, high, "whole number");
  if (!value) return of_option(option, arguments.text(option), value.error());
  if (*value < low) {
    return invalid("--" + option + ": " + arguments.text(option) + " is too small",
                   "use " + std::to_string(low) + " to " + std::to_string(high));
  }
  out = *value;
  return {};
}

Result<std::pair<std::string, std::string>> split(const std::string& option,
                                                  const std::string& text, const char* shape) {
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos || sign == 0)
    return invalid("--" + option + ": '" + text + "' has no name and value",
                   "write it as " + std::string(shape));
  return std::pair(text.substr(0, sign), text.substr(sign + 1));
}

Result<void> take_pairs(const Arguments& arguments, const std::string& option, const char* shape,
                        std::map<std::string, std::string>& out) {
  std::set<std::string> given;
  for (const std::string& text : arguments.list(option)) {
    LOAM_TRY(pair, split(option, text, shape));
    if (!given.insert(pair.first).second)
      return invalid("--" + option + ": '" + pair.first + "' is given twice", "give each once");
    out[pair.first] = pair.second;
  }
  return {};
}

// NAME=VALUE, or NAME alone for the value that it has here.
Result<void> take_variables(const Session& session, const Arguments& arguments,
                            std::map<std::string, std::string>& out) {
  for (const std::string& text : arguments.list("env")) {
    if (text.find('=') != std::string::npos) {
      LOAM_TRY(pair, split("env", text, "NAME=VALUE"));
      out[pair.first] = pair.second;
      continue;
    }
    const std::string value = session.variable(text.c_str());
    if (text.empty() || value.empty())
      return invalid("--env: '" + text + "' is not set here", "write it as NAME=VALUE");
    out[text] = value;
  }
  return {};
}

// SOURCE:TARGET[:rw|:ro], or PATH for the same path on both sides.
Result<api::MountRequest> mount_of(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  const Error fault = invalid("--mount: '" + text + "' is not a mount",
                              "write it as SOURCE:TARGET or SOURCE:TARGET:rw");
  api::MountRequest mount;
  if (parts.size() > 1 && (parts.back() == "rw" || parts.back() == "ro")) {
    mount.read_only = parts.back() == "ro";
    parts.pop_back();
  }
  if (parts.size() > 2 || parts.front().empty() || parts.back().empty()) return fault;
  std::error_code unknown;
  mount.source = std::filesystem::absolute(parts.front(), unknown).lexically_normal().string();
  if (unknown) return fault;
  mount.target = parts.size() == 2 ? parts.back() : mount.source;
  if (!mount.target.starts_with('/'))
    return invalid("--mount: the target '" + mount.target + "' is not an absolute path",
                   "start it with '/'");
  return mount;
}

Result<api::TaskRequest> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Error{ErrorKind::not_found, "cannot read the task file " + path,
                 "check the path and its permissions"};
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  auto request = api::from_json<api::TaskRequest>(text);
  if (!request)
    return invalid(path + ": " + request.error().message,
                   "the members are those of TaskRequest: see docs/cli.md");
  return request;
}

// Of a task, or of a reservation.
template <class Request>
Result<void> take_resources(const Arguments& arguments, Request& request) {
  if constexpr (std::is_same_v<Request, api::TaskRequest>) {
    LOAM_CHECK(take(arguments, "ce", request.ce, parse_asked_ce));
  } else {
    LOAM_CHECK(take(arguments, "ce", request.ce, parse_ce));
  }
  LOAM_CHECK(take(arguments, "share", request.share, parse_share));
  LOAM_CHECK(take(arguments, "memory", request.memory, parse_memory));
  LOAM_CHECK(take(arguments, "bandwidth", request.bandwidth, parse_share));
  LOAM_CHECK(take(arguments, "cpu", request.cpu, parse_cpu));
  LOAM_CHECK(take(arguments, "host-memory", request.host_memory, parse_memory));
  LOAM_CHECK(take_count(arguments, "devices", 1, 1'000'000, request.devices));
  take(arguments, "device", request.device);
  take(arguments, "type", request.device_type);
  take(arguments, "region", request.region);
  if (arguments.has("label")) request.labels = arguments.list("label");
  take(arguments, "work-class", request.work_class);
  take(arguments, "isolation", request.isolation);
  if (arguments.has("burstable")) request.mode = "burstable";
  LOAM_CHECK(take_count(arguments, "gang", 1, 1'000'000, request.gang));
  // What is typed goes before what the file says of the other.
  if (arguments.has("ce") && !arguments.has("share")) request.share.reset();
  if (arguments.has("share") && !arguments.has("ce")) request.ce.reset();
  if (request.ce && request.share)
    return invalid("both --ce " + *request.ce + " and --share " + *request.share + " are asked for",
                   "use --ce for compute, or --share for a part of one device");
  if (!request.ce && !request.share) request.share = whole_device_text;
  return {};
}

// A program of the folder one is in, or below it, needs that folder, which no task sees by itself.
// What it writes there stays.
void take_own_folder(api::TaskRequest& request) {
  if (request.command.empty() || !request.mounts.empty() || !request.working_directory.empty())
    return;
  namespace fs = std::filesystem;
  std::error_code fault;
  const fs::path here = fs::current_path(fault);
  if (fault || here == "/") return;
  const auto is_here = [&](const std::string& word) {
    if (word.starts_with('/')) return false;
    const fs::path path = fs::absolute(word, fault).lexically_normal();
    const fs::path below = path.lexically_relative(here);
    return !below.empty() && *below.begin() != ".." && fs::is_regular_file(path, fault);
  };
  const bool program_here =
      request.command.front().find('/') != std::string::npos && is_here(request.command.front());
  // python3 train.py
  const bool script_here = request.command.size() > 1 && !request.command[1].starts_with('-') &&
                           is_here(request.command[1]);
  if (!program_here && !script_here) return;
  request.mounts.push_back({here.string(), here.string(), false});
  request.working_directory = here.string();
}

Result<void> take_times(const Arguments& arguments, api::TaskRequest& request) {
  LOAM_CHECK(take(arguments, "time", request.time, parse_duration));
  if (request.time && arguments.has("time") && parse_duration(*request.time)->ms == 0)
    return invalid("--time: a task of " + *request.time + " cannot run", "ask for at least 1s");
  LOAM_CHECK(take(arguments, "expect", request.expected, parse_duration));
  LOAM_CHECK(take(arguments, "grace", request.grace, parse_duration));
  LOAM_CHECK(take(arguments, "deadline", request.deadline, parse_instant));
  LOAM_CHECK(take(arguments, "changeover", request.changeover, parse_duration));
  LOAM_CHECK(take(arguments, "wait-at-most", request.wait_at_most, parse_duration));
  take(arguments, "spot-policy", request.spot_policy);
  LOAM_CHECK(take_count(arguments, "restarts", 0, 1000, request.restarts_max));
  LOAM_CHECK(take_count(arguments, "segments", 1, 1'000'000, request.segments));
  LOAM_CHECK(take_count(arguments, "backups", 0, 100, request.backups));
  take(arguments, "every", request.recurrence);
  return {};
}

// What is typed of the two goes before what the file says of the other.
void take_purchase(const Arguments& arguments, api::TaskRequest& request) {
  const bool on_one = arguments.has("reservation");
  if (arguments.has("purchase")) {
    request.purchase_model = arguments.text("purchase");
    if (!on_one && request.purchase_model != "reservation") request.reservation.clear();
  } else if (on_one) {
    request.purchase_model.reset();
  }
  take(arguments, "reservation", request.reservation);
}

// In a CI job, what it runs for becomes tags, where nobody said otherwise.
void tag_by_job(const Session& session, api::TaskRequest& request) {
  billing::add_ci_tags([&](const char* name) { return session.variable(name); }, request.tags);
}

// JSON carries text only, so bytes that are none are refused here, by the option they came with.
Result<void> check_text(const Arguments& arguments) {
  for (const auto& [option, values] : arguments.options) {
    for (const std::string& value : values) {
      if (!http::is_utf8(value))
        return invalid("--" + option + ": '" + printable(value) + "' is not UTF-8",
                       "pass such bytes in a file that the program reads");
    }
  }
  for (const std::string& word : arguments.operands) {
    if (!http::is_utf8(word))
      return invalid("the argument '" + printable(word) + "' is not UTF-8",
                     "pass such bytes in a file that the program reads");
  }
  return {};
}

// "4 × " where a task gets several slices alike: of a gang, or of devices that act as one.
std::string slices_text(const api::QuoteView& quote) {
  return quote.devices > 1 ? std::to_string(quote.devices) + " × " : std::string();
}

std::string waits_text(const api::QuoteView& quote) {
  if (!quote.room_by) return quote.waits_for;
  return quote.waits_for + "; there is room by " + *quote.room_by +
         " if what runs uses its whole time";
}

std::string when_it_starts(const api::QuoteView& quote) {
  return quote.starts_now ? "now" : "later";
}

// What the request left open and the quote or the shape of a request filled in.
std::string defaults_of(const api::QuoteView& quote, const Arguments& arguments,
                        const api::TaskRequest& asked) {
  std::string text;
  const auto add = [&](bool given, const std::string& words) {
    if (!given && !words.empty()) text += (text.empty() ? "" : ", ") + words;
  };
  const api::TaskRequest plain;
  add(!asked.tenant.empty(), "tenant " + quote.tenant);
  add(arguments.has("ce") || arguments.has("share") || arguments.has("file"),
      "share 1: a whole device");
  add(!has_own_folder(arguments, asked), "the folder you are in, writable");
  add(asked.time.has_value(), "time " + human_duration(quote.limit_ms));
  add(asked.memory.has_value(), "memory " + memory_text(quote.memory_mib));
  add(asked.cpu.has_value(), "cpu 1");
  add(asked.host_memory.has_value(), "host-memory 2GiB");
  add(asked.isolation != plain.isolation, "isolation any");
  add(asked.mode != plain.mode, "strict");
  add(asked.purchase_model.has_value() || !asked.reservation.empty(),
      "purchase " + quote.purchase_model);
  add(asked.tariff != plain.tariff, "tariff " + quote.tariff);
  add(asked.project != plain.project, "project " + asked.project);
  add(asked.environment != plain.environment, "environment " + asked.environment);
  return text;
}

// What runs on a reservation is paid from what that set aside: nothing is for itself.
const std::string& most_of(const api::QuoteView& quote) {
  return quote.purchase_model == "reservation" ? quote.worst_with_tax : quote.at_most;
}

std::string most_words(const api::QuoteView& quote, const api::TaskRequest& asked) {
  const std::string time = "for " + human_duration(quote.limit_ms) + "; ";
  return asked.reservation.empty() ? time + "set aside first, what is left comes back"
                                   : time + "paid from what " + asked.reservation + " set aside";
}

}  // namespace

Result<void> take_tags(const Arguments& arguments, std::map<std::string, std::string>& tags) {
  LOAM_CHECK(take_pairs(arguments, "tag", "KEY=VALUE", tags));
  if (const auto good = billing::check(tags); !good.ok())
    return invalid("--tag: " + good.error().message, good.error().next_step);
  return {};
}

bool has_own_folder(const Arguments& arguments, const api::TaskRequest& request) {
  return !request.mounts.empty() && !arguments.has("mount") && !arguments.has("file");
}

OptionGroup term_options() {
  return {
      "Terms",
      {{"--purchase", "MODEL", "purchase model", Kind::value,
        "on_demand reservation commitment spot hybrid"},
       {"--reservation", "RSV", "on what is reserved, such as rsv-1: loam reservation list",
        Kind::value, "@reservation"},
       {"--tariff", "TARIFF", "price by the hour of day or not", Kind::value, "flat time_of_day"},
       {"--class", "NAME", "service class; default: standard"},
       {"--role", "ROLE", "of a hybrid task: critical runs on demand; default: auxiliary, on spot",
        Kind::value, "auxiliary critical"},
       {"--queue", "NAME", "where it waits; default: the pool's first queue"},
       {"--grace", "LENGTH", "between the notice and the kill; default: 30s"},
       {"--restarts", "N", "new attempts after the loss of a device; default: 0"},
       {"--wait-at-most", "LENGTH",
        "longest wait for its first start, then it has expired; default: the pool's hold_expires"},
       {"--deadline", "INSTANT",
        "be done by, UTC, such as 2026-03-02T00:00:00Z: runs in the cheapest hours before"},
       {"--changeover", "LENGTH",
        "of a spot task with a deadline: to save and to load; default: 1m"},
       {"--spot-policy", "POLICY", "when such a task is on spot; default: reserve", Kind::value,
        "reserve uniform_progress greedy"},
       {"--every", "CRON", "run each time that is due: '0 2 * * 1-5 Europe/Berlin', @daily"},
       {"--backups", "N", "copies kept of the last checkpoints that it went on from; default: 0"},
       {"--segments", "N", "equal pieces of --time that each end in a checkpoint; default: 1"}}};
}

std::vector<OptionGroup> request_options() {
  return {
      {"How much",
       {{"--ce", "CE",
         "compute in CE, 100 = one A100-SXM-80GB; auto:40: what runs of its --name used, at most "
         "40"},
        {"--share", "PART", "a part of one device instead: above 0, at most 1; default: 1"},
        {"--memory", "SIZE", "device memory, such as 10GiB; default: in proportion to the share"},
        {"--time", "LENGTH", "longest run time, such as 2h or 90m; default: 1h"},
        {"--expect", "LENGTH", "run time thought likely, for the quote; default: the longest"},
        {"--bandwidth", "PART",
         "copy bandwidth share, at most the compute share, which is the default"},
        {"--cpu", "N", "CPUs beside the device, such as 1.5; default: 1"},
        {"--host-memory", "SIZE", "the host's memory; default: 2GiB"},
        {"--devices", "N", "devices of one node that act as one; the rest is of each; default: 1"},
        {"--gang", "N",
         "members that start together or not at all, each with all this; default: 1"}}},
      {"Where",
       {{"--device", "NAME", "this device: node/index or UUID", Kind::value, "@device"},
        {"--type", "TYPE", "any device of this type"},
        {"--region", "NAME", "on a node of this region"},
        {"--label", "NAME", "on a node that bears this label; may be given again", Kind::list},
        {"--work-class", "CLASS", "how it uses the device", Kind::value,
         "general train prefill decode"},
        {"--isolation", "LEVEL", "how neighbours are kept apart", Kind::value,
         "any software hardware"},
        {"--burstable", "", "take what idles on the device too", Kind::flag}}},
      term_options(),
      {"Who pays",
       {{"--tenant", "NAME", "the tenant; default: LOAM_TENANT, else the caller's own", Kind::value,
         "@tenant"},
        {"--project", "NAME", "the project; default: default"},
        {"--environment", "NAME", "production, test, …; default: default"},
        {"--model", "NAME", "the AI model it is for, or NAME@VERSION"},
        {"--group", "NAME", "tasks whose cost is shown together: loam cost --by group"},
        {"--tag", "KEY=VALUE", "a tag on the bill; may be given again", Kind::list}}},
      {"The process",
       {{"--name", "NAME", "a name for the task"},
        {"--env", "NAME=VALUE", "an environment variable; NAME alone passes it on", Kind::list},
        {"--workdir", "PATH",
         "the folder to start in; default: an empty one, or the one you are in if the program is "
         "in it",
         Kind::value, "@path"},
        {"--mount", "SRC:DST[:rw]", "a folder of the node, read-only unless rw", Kind::list,
         "@path"},
        {"--secret", "NAME=REF", "a variable from a secret reference; not yet", Kind::list},
        {"--port", "N", "a port it serves, told in LOAM_PORTS; such a task is a service",
         Kind::list},
        {"--image", "DIGEST", "an image to run in; not yet"},
        {"--file", "SPEC.json", "read the request from a file; options go before it", Kind::value,
         "@path"}}},
  };
}

Result<api::TaskRequest> request_of(const Session& session, const Arguments& arguments) {
  LOAM_CHECK(check_text(arguments));
  api::TaskRequest request;
  if (arguments.has("file")) {
    LOAM_TRY(read, read_file(arguments.text("file")));
    request = std::move(read);
  }
  if (!arguments.operands.empty()) request.command = arguments.operands;
  LOAM_CHECK(take_resources(arguments, request));
  LOAM_CHECK(take_times(arguments, request));
  if (arguments.has("tenant") || request.tenant.empty()) request.tenant = session.tenant();
  take(arguments, "project", request.project);
  take(arguments, "environment", request.environment);
  take(arguments, "model", request.model);
  take(arguments, "name", request.name);
  take(arguments, "workdir", request.working_directory);
  take(arguments, "image", request.image);
  take_purchase(arguments, request);
  take(arguments, "tariff", request.tariff);
  take(arguments, "class", request.service_class);
  take(arguments, "queue", request.queue);
  take(arguments, "role", request.role);
  take(arguments, "group", request.group);
  LOAM_CHECK(take_tags(arguments, request.tags));
  LOAM_CHECK(take_pairs(arguments, "secret", "NAME=REFERENCE", request.secrets));
  LOAM_CHECK(take_variables(session, arguments, request.env));
  for (const std::string& text : arguments.list("mount")) {
    LOAM_TRY(mount, mount_of(text));
    request.mounts.push_back(std::move(mount));
  }
  for (const std::string& text : arguments.list("port")) {
    const auto port = parse_decimal(text, 0, 65535, "port");
    if (!port) return of_option("port", text, port.error());
    request.ports.push_back(*port);
  }
  take_own_folder(request);
  tag_by_job(session, request);
  return request;
}

std::vector<OptionGroup> reservation_options() {
  std::vector<OptionGroup> groups = request_options();
  const auto only = [&](const char* title, const char* now, const std::set<std::string>& keys) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const OptionGroup& of) {
      return std::string_view(of.title) == title;
    });
    group->title = now;
    std::erase_if(group->options,
                  [&](const Option& of) { return !keys.contains(std::string(of.key())); });
  };
  only("How much", "How much",
       {"ce", "share", "memory", "bandwidth", "cpu", "host-memory", "devices", "gang"});
  only("Terms", "Terms", {"tariff", "queue"});
  only("Who pays", "Whose cost unused time is",
       {"tenant", "project", "environment", "model", "tag"});
  std::erase_if(groups,
                [](const OptionGroup& of) { return std::string_view(of.title) == "The process"; });
  const OptionGroup when{
      "When",
      {{"--from", "INSTANT", "its begin, such as 2026-12-01T08:00Z; default: now"},
       {"--to", "INSTANT", "its end, not included"},
       {"--for", "LENGTH", "or how long it is, such as 4h"}}};
  groups.insert(groups.begin(), when);
  return groups;
}

Result<api::ReservationRequest> reservation_of(const Session& session, const Arguments& arguments) {
  LOAM_CHECK(check_text(arguments));
  api::ReservationRequest request;
  if (arguments.has("to") == arguments.has("for")) {
    return invalid(arguments.has("to") ? "both --to and --for are given" : "its end is missing",
                   "give it as an instant, --to 2026-12-01T12:00Z, or as a length, --for 4h");
  }
  LOAM_TRY(from, instant_or_day(arguments, "from"));
  LOAM_TRY(to, instant_or_day(arguments, "to"));
  if (!from.empty()) request.from = from;
  if (!to.empty()) request.to = to;
  LOAM_CHECK(take(arguments, "for", request.length, parse_duration));
  LOAM_CHECK(take_resources(arguments, request));
  request.tenant = session.tenant();
  take(arguments, "tariff", request.tariff);
  take(arguments, "queue", request.queue);
  take(arguments, "project", request.project);
  take(arguments, "environment", request.environment);
  take(arguments, "model", request.model);
  LOAM_CHECK(take_tags(arguments, request.tags));
  return request;
}

std::string quote_text(const api::QuoteView& quote, const Arguments& arguments,
                       const api::TaskRequest& asked, bool colour) {
  const auto money = [&](const std::string& amount) {
    return money_short(amount, quote.currency) + " " + quote.currency;
  };
  std::string why = quote.per_task ? money_exact(quote.unit_price, quote.currency) + " " +
                                         quote.currency + " a task, however long"
                                   : quote.billable_ce + " CE × " +
                                         money_exact(quote.unit_price, quote.currency) + " " +
                                         quote.currency + " a CE-hour";
  if (quote.discount_percent != "0") why += ", less " + quote.discount_percent + " %";
  const bool taxed = quote.tax_percent != "0";
  if (taxed) why += ", before tax";
  std::vector<std::string> numbers{
      quote.per_task ? "-" : money(quote.per_hour),
      money_most(most_of(quote), quote.currency) + " " + quote.currency, when_it_starts(quote),
      money(quote.expected_with_tax)};
  std::size_t width = 0;
  for (const std::string& number : numbers) width = std::max(width, number.size() + 3);
  const auto line = [&](const char* name, const std::string& number, const std::string& words) {
    return styled(name, Style::dim, colour) + styled(number, Style::bold, colour) +
           std::string(width - number.size(), ' ') + printable(words) + "\n";
  };
  const std::string where =
      quote.device + (quote.device_type.empty() ? "" : " (" + quote.device_type + ")");
  std::string text =
      line("per hour  ", numbers[0], why) +
      line("expected  ", numbers[3],
           "for " + human_duration(quote.expected_ms) + "; best " + money(quote.best_with_tax) +
               ", worst " + money_most(quote.worst_with_tax, quote.currency) + " " +
               quote.currency + (taxed ? "; tax of " + quote.tax_percent + " % included" : "")) +
      line("at most   ", numbers[1], most_words(quote, asked)) +
      line("starts    ", numbers[2],
           quote.starts_now ? "on " + where : "waits: " + waits_text(quote));
  text += "\n" + facts_text({{"gets", slices_text(quote) + percent(quote.share) + " of " + where +
                                          ", " + memory_text(quote.memory_mib) +
                                          " of device memory = " + quote.ce + " CE"},
                             {"promised", quote.promise},
                             {"billed", quote.billable_ce + " CE: the greater of the CE and " +
                                            quote.ce_per_gibibyte + " CE for each GiB"},
                             {"takes", quote.takes},
                             {"rule", quote.rule},
                             {"filled in", defaults_of(quote, arguments, asked)}},
                            colour);
  if (!asked.memory && quote.billable_ce != quote.ce)
    text += "\nThe memory decides this price; --memory asks for less of it.\n";
  return text;
}

std::string quote_line(const api::QuoteView& quote) {
  return "quote: " + money_short(quote.per_hour, quote.currency) + " " + quote.currency +
         " per hour, at most " + money_most(most_of(quote), quote.currency) + " " + quote.currency +
         " in " + human_duration(quote.limit_ms) + ", " +
         (quote.starts_now ? "starts now on " + printable(quote.device)
                           : "waits: " + printable(waits_text(quote))) +
         " (" + slices_text(quote) + percent(quote.share) + ", " + memory_text(quote.memory_mib) +
         ")";
}

}  // namespace loam::cli
