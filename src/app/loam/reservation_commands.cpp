// reservation make, quote, list and cancel: capacity locked for an interval to come.
#include "app/loam/commands.hpp"
#include "app/loam/human.hpp"
#include "app/loam/request.hpp"
#include "app/loam/session.hpp"

namespace loam::cli {
namespace {

using Kind = Option::Kind;

bool locks(const api::ReservationView& reservation) {
  return reservation.state == "coming" || reservation.state == "in_force";
}

int print_reservations(Session& session, const std::vector<api::ReservationView>& all) {
  Table table({{"ID"},
               {"TENANT"},
               {"STATE"},
               {"CE", Align::right},
               {"FROM (UTC)"},
               {"TO (UTC)"},
               {"DEVICES", Align::left, true},
               {"HELD", Align::right},
               {""},
               {"PROJECT"}});
  for (const api::ReservationView& reservation : all) {
    table.add({reservation.id, reservation.tenant, reservation.state, reservation.ce,
               instant_text(reservation.from), instant_text(reservation.to), reservation.devices,
               money_short(reservation.held, reservation.currency), reservation.currency,
               reservation.project});
  }
  session.out() << session.text_of(table);
  return 0;
}

Result<int> run_reservation_list(Session& session, const Arguments& arguments) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(list, client->reservations());
  const bool all = arguments.has("all");
  if (!all) std::erase_if(list.reservations, [](const auto& each) { return !locks(each); });
  if (session.json()) return session.print_json(list);
  if (list.reservations.empty()) {
    session.say(all ? "no reservations; make one with: loam reservation make --ce 10 --for 1h"
                    : "no reservations now or to come; those that ended: "
                      "loam reservation list --all");
    return 0;
  }
  return print_reservations(session, list.reservations);
}

Result<int> run_reservation_quote(Session& session, const Arguments& arguments) {
  LOAM_TRY(request, reservation_of(session, arguments));
  LOAM_TRY(client, session.client());
  LOAM_TRY(quote, client->quote_reservation(request));
  if (session.json()) return session.print_json(quote);
  const auto money = [&](const std::string& amount) {
    return money_exact(amount, quote.currency) + " " + quote.currency;
  };
  session.out() << facts_text(
      {{"gets", quote.ce + " CE: " + quote.devices + ", " + quote.isolation + " isolation"},
       {"from", instant_text(quote.from) + " UTC"},
       {"to", instant_text(quote.to) + " UTC"},
       {"per hour", money(quote.per_hour) + ": " + quote.billable_ce + " CE × " +
                        money(quote.unit_price) + " a CE-hour, less any discount; before tax"},
       {"used in full", money(quote.used)},
       {"not used", money(quote.unused) + ", at " + quote.unused_percent + " % of the price"},
       {"set aside", money_most(quote.held, quote.currency) + " " + quote.currency +
                         ", tax included; what is left comes back"}},
      session.console().colour);
  return 0;
}

Result<int> run_reservation_make(Session& session, const Arguments& arguments) {
  LOAM_TRY(request, reservation_of(session, arguments));
  LOAM_TRY(client, session.client());
  LOAM_TRY(reservation, client->make_reservation(request));
  if (session.json()) return session.print_json(reservation);
  print_reservations(session, {reservation});
  session.say("run on it with: loam run --reservation " + reservation.id + " -- CMD");
  return 0;
}

Result<int> run_reservation_cancel(Session& session, const Arguments& arguments) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(reservation,
           client->cancel_reservation(arguments.operand(0), {arguments.text("reason")}));
  if (session.json()) return session.print_json(reservation);
  return print_reservations(session, {reservation});
}

}  // namespace

std::vector<Command> reservation_commands() {
  return {
      {"reservation list",
       "The reservations that are in force or to come",
       "",
       "loam reservation list\nloam reservation list --all",
       {},
       {{"Which", {{"--all,-a", "", "those that ended too", Kind::flag}}}},
       run_reservation_list},
      {"reservation quote",
       "What a reservation would get, and at what price",
       "",
       "loam reservation quote --ce 40 --for 4h",
       {},
       reservation_options(),
       run_reservation_quote},
      {"reservation make",
       "Lock capacity for an interval to come",
       "Nobody else gets it then; spot tasks may use it until two minutes before it begins. What\n"
       "runs on it (run --reservation) is billed at the price of a reserved CE-hour, and what is\n"
       "not used at the share of it that the rate card states. What it may cost is set aside\n"
       "first. See docs/billing.md.",
       "loam reservation make --ce 40 --from 2026-12-01T08:00Z --to 2026-12-01T12:00Z\n"
       "loam reservation make --share 1 --type H100-SXM --for 4h",
       {},
       reservation_options(),
       run_reservation_make,
       true},
      {"reservation cancel",
       "Cancel a reservation before it begins",
       "It costs nothing then. One that has begun is charged to its end.",
       "loam reservation cancel rsv-3",
       {{"ID", "a reservation, such as rsv-3", Operand::Kind::one, "@reservation"}},
       {{"How", {{"--reason", "TEXT", "what the journal says of it"}}}},
       run_reservation_cancel,
       true},
  };
}

}  // namespace loam::cli
