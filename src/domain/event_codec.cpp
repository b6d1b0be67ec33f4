#include "domain/event_codec.hpp"

#include <algorithm>
#include <charconv>

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

std::string excerpt_of(const bj::value& json) {
  constexpr std::size_t most = 40;
  std::string text;
  if (json.is_double()) {  // as people write it, not with an exponent
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, json.get_double());
    text.assign(digits, end.ptr);
  } else {
    text = bj::serialize(json);
  }
  if (text.size() <= most) return text;
  std::size_t cut = most;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
  return text.substr(0, cut) + "...";
}

bool fail_of_type(const bj::value& json, const char* wanted, const char* example, Reader& reader) {
  const std::string found = excerpt_of(json);
  const bool to_quote = std::string_view(wanted) == "text" && (json.is_number() || json.is_bool());
  return reader.fail("is " + found + ", which is not " + wanted,
                     "write " + std::string(wanted) + ", such as " +
                         (to_quote ? '"' + found + '"' : std::string(example)));
}

}  // namespace json

namespace {

Error unknown_event(const EncodedEvent& encoded) {
  return Error{ErrorKind::unsupported,
               "the journal holds an event '" + encoded.type + "' version " +
                   std::to_string(encoded.version) + " that this program does not know",
               "it was written by a newer loam: run that version"};
}

namespace bj = json::bj;

bj::object* object_in(bj::object& of, const char* member) {
  bj::value* found = of.if_contains(member);
  return found != nullptr && found->is_object() ? &found->get_object() : nullptr;
}

// Queues had all devices and sold all work classes, service classes had nothing that follows an
// alarm, and placement was not chosen.
void lift_scheduling(bj::object& event) {
  bj::object* settings = object_in(event, "settings");
  if (settings == nullptr) return;
  const auto lift_all = [&](const char* list, const bj::object& whole) {
    bj::value* entries = settings->if_contains(list);
    if (entries == nullptr || !entries->is_array()) return;
    for (bj::value& entry : entries->get_array()) {
      if (!entry.is_object()) continue;
      for (const auto& [name, value] : whole) entry.get_object().emplace(name, value);
    }
  };
  lift_all("queues", {{"device_types", bj::array{}},
                      {"region", ""},
                      {"labels", bj::array{}},
                      {"work_classes", bj::array{}}});
  lift_all("classes", {{"late", bj::array{}}});
  settings->emplace("placement", "packing_value");
}

// Quotas counted neither devices nor lengths, and no tenant lent.
void lift_quota(bj::object& event) {
  bj::object* spec = object_in(event, "spec");
  bj::object* quota = spec == nullptr ? nullptr : object_in(*spec, "quota");
  if (quota == nullptr) return;
  const bj::value whole = json::write(Quota{});
  for (const auto& [name, value] : whole.get_object()) quota->emplace(name, value);
}

// What version 1 of a type did not have yet gets what was true then. What is not there at all is
// left to the reader, which names it.
template <class T>
void lift_from_1(bj::object&, const T*) {}

void lift_from_1(bj::object& event, const RateCardPublished*) {
  if (bj::object* card = object_in(event, "card"))
    card->emplace("terms", json::write(PriceTerms{}));
}
// Whether a node keeps tasks apart was found out as each started.
void lift_from_1(bj::object& event, const NodeAttached*) {
  event.emplace("sandboxed", true);
}
// Nothing was known of which devices are near.
void lift_from_1(bj::object& event, const DeviceAttached*) {
  bj::object* facts = object_in(event, "facts");
  if (facts == nullptr) return;
  facts->emplace("link_group", "");
  facts->emplace("numa_node", nullptr);
}
void lift_from_1(bj::object& event, const SchedulingSet*) {
  lift_scheduling(event);
}
void lift_from_1(bj::object& event, const TenantCreated*) {
  lift_quota(event);
}
void lift_from_1(bj::object& event, const TenantChanged*) {
  lift_quota(event);
}
void lift_from_1(bj::object& event, const TaskAccepted*) {
  if (bj::object* spec = object_in(event, "spec")) spec->emplace("queue", "");
}
void lift_from_1(bj::object& event, const LeaseGranted*) {
  event.emplace("purchase_model", "on_demand");
}
void lift_from_1(bj::object& event, const UsageRated*) {
  bj::object* record = object_in(event, "record");
  if (record == nullptr) return;
  const bj::value* from = record->if_contains("from");
  const bj::value* to = record->if_contains("to");
  if (from == nullptr || to == nullptr || !from->is_int64() || !to->is_int64()) return;
  record->emplace("billed", to->get_int64() - from->get_int64());
  record->emplace("tariff", "flat");
  record->emplace("window", "");
  for (const char* zero : {"tasks", "tier_month", "list_residue", "net_residue"})
    record->emplace(zero, 0);
}
void lift_from_1(bj::object& event, const InvoiceIssued*) {
  bj::object* invoice = object_in(event, "invoice");
  if (invoice == nullptr) return;
  if (const bj::value* total = invoice->if_contains("total")) {
    bj::value subtotal = *total;
    invoice->emplace("subtotal", std::move(subtotal));
  }
  invoice->emplace("taxes", bj::array{});
  bj::value* lines = invoice->if_contains("lines");
  if (lines == nullptr || !lines->is_array()) return;
  for (bj::value& line : lines->get_array()) {
    if (!line.is_object()) continue;
    line.get_object().emplace("tasks", 0);
    bj::object* key = object_in(line.get_object(), "key");
    if (key == nullptr) continue;
    key->emplace("kind", "usage");
    key->emplace("tariff", "flat");
    key->emplace("window", "");
    key->emplace("per_task", false);
  }
}

void lift_from_1(bj::object& event, const TransactionPosted*) {
  if (bj::object* transaction = object_in(event, "transaction"))
    transaction->emplace("reverses", 0);
}
// Budgets counted from when they were made.
void lift_from_1(bj::object& event, const BudgetSet*) {
  const bj::object* budget = object_in(event, "budget");
  const bj::value* monthly = budget == nullptr ? nullptr : budget->if_contains("monthly");
  if (monthly == nullptr || !monthly->is_string()) return;
  const bj::string& text = monthly->get_string();
  bj::string none("0");
  none += text.subview(std::min(text.find(' '), text.size()));
  event.emplace("spent", std::move(none));
}
// Nobody could cancel one.
void lift_from_1(bj::object& event, const CommitmentBought*) {
  if (bj::object* commitment = object_in(event, "commitment"))
    commitment->emplace("cancelled", false);
}
void lift_from_1(bj::object& event, const CommitmentEnded*) {
  event.emplace("cancelled", false);
}

// Models had no versions, and lines belonged to no month.
void lift_key(bj::object& line) {
  if (bj::object* key = object_in(line, "key")) key->emplace("model_version", "");
}
void lift_line(bj::object& line) {
  lift_key(line);
  line.emplace("month_end", 0);
}
void lift_lines(bj::object& event, const char* member, void (*lift)(bj::object&)) {
  bj::value* lines = event.if_contains(member);
  if (lines == nullptr || !lines->is_array()) return;
  for (bj::value& line : lines->get_array()) {
    if (line.is_object()) lift(line.get_object());
  }
}
void lift_one_line(bj::object& event) {
  if (bj::object* line = object_in(event, "line")) lift_line(*line);
}
void lift_attribution(bj::object& of) {
  if (bj::object* attribution = object_in(of, "attribution"))
    attribution->emplace("model_version", "");
}

void lift_from_1(bj::object& event, const CommitmentCharged*) {
  lift_one_line(event);
}
void lift_from_1(bj::object& event, const UseCovered*) {
  lift_lines(event, "lines", lift_line);
}
void lift_from_1(bj::object& event, const ShortfallCredited*) {
  lift_one_line(event);
}
void lift_from_1(bj::object& event, const LostWorkCredited*) {
  lift_one_line(event);
}
void lift_from_1(bj::object& event, const TokensUsed*) {
  lift_lines(event, "charged", lift_line);
  lift_lines(event, "earned", lift_line);
}

// Lines did not say whose use they give back.
void lift_lease(bj::object& line) {
  line.emplace("lease", 0);
}
void lift_lease_of_one(bj::object& event) {
  if (bj::object* line = object_in(event, "line")) lift_lease(*line);
}
void lift_from_1(bj::object& event, const ServicesUsed*) {
  lift_lines(event, "lines", lift_lease);
}
void lift_from_1(bj::object& event, const ReservationCharged*) {
  lift_lines(event, "lines", lift_lease);
}

// What was given was promised, all of it.
void lift_slices(bj::object& of) {
  lift_lines(of, "slices", [](bj::object& slice) {
    for (const char* none : {"unpromised", "memory_unpromised"}) slice.emplace(none, 0);
  });
}
void lift_members(bj::object& of) {
  lift_lines(of, "members", lift_slices);
}
void lift_from_1(bj::object& event, const TaskPromised*) {
  lift_members(event);
}
void lift_from_1(bj::object& event, const ReservationMade*) {
  if (bj::object* reservation = object_in(event, "reservation")) lift_members(*reservation);
}
void lift_from_1(bj::object& event, const ReservationMoved*) {
  lift_members(event);
}

// Tasks said nothing of what they made, and came back as they were.
void lift_from_1(bj::object& event, const LeaseEnded*) {
  event.emplace("output", nullptr);
}
void lift_from_1(bj::object& event, const TaskRequeued*) {
  event.emplace("purchase_model", nullptr);
}

// Likewise for what version 2 did not have.
template <class T>
void lift_from_2(bj::object&, const T*) {}

// Months were those of UTC, nothing was invoiced unasked, and quotas counted no CE-hours.
void lift_months(bj::object& event) {
  lift_quota(event);
  bj::object* spec = object_in(event, "spec");
  if (spec == nullptr) return;
  spec->emplace("billing_zone", "UTC");
  spec->emplace("invoicing", "on_demand");
}
void lift_from_2(bj::object& event, const TenantCreated*) {
  lift_months(event);
}
void lift_from_2(bj::object& event, const TenantChanged*) {
  lift_months(event);
}
void lift_from_2(bj::object& event, const TaskAccepted*) {
  bj::object* spec = object_in(event, "spec");
  if (spec == nullptr) return;
  spec->emplace("role", "auxiliary");
  spec->emplace("group", "");
  lift_attribution(*spec);
}
void lift_from_2(bj::object& event, const LeaseGranted*) {
  lift_slices(event);
}
void lift_from_2(bj::object& event, const UsageRated*) {
  if (bj::object* record = object_in(event, "record")) record->emplace("month_end", 0);
}
void lift_from_2(bj::object& event, const CommitmentBought*) {
  if (bj::object* commitment = object_in(event, "commitment")) lift_attribution(*commitment);
}

void lift_from_2(bj::object& event, const CommitmentCharged*) {
  lift_lease_of_one(event);
}
// What a running lease used of its device was told at its end alone, and tasks had no backups.
void lift_from_2(bj::object& event, const ServicesUsed*) {
  event.emplace("device_time", nullptr);
  event.emplace("backed_up", 0);
  if (bj::object* use = object_in(event, "use")) use->emplace("backup_mib_ms", 0);
}
void lift_from_2(bj::object& event, const UseCovered*) {
  lift_lines(event, "lines", lift_lease);
}
void lift_from_2(bj::object& event, const ShortfallCredited*) {
  lift_lease_of_one(event);
}
void lift_from_2(bj::object& event, const LostWorkCredited*) {
  lift_lease_of_one(event);
}
// Nor had tokens tags, and their income was of no project in particular.
void lift_from_2(bj::object& event, const TokensUsed*) {
  lift_lines(event, "charged", lift_lease);
  lift_lines(event, "earned", lift_lease);
  bj::object* use = object_in(event, "use");
  if (use == nullptr) return;
  for (const char* tags : {"tags", "owner_tags"}) use->emplace(tags, bj::object{});
  for (const char* name : {"owner_project", "owner_environment"}) use->emplace(name, "default");
}

void lift_from_2(bj::object& event, const RateCardPublished*) {
  bj::object* card = object_in(event, "card");
  bj::object* terms = card == nullptr ? nullptr : object_in(*card, "terms");
  if (terms != nullptr) terms->emplace("tokens", bj::array{});
}
// Budgets said whether they deny where what was spent cannot be known; it always is.
void lift_from_2(bj::object& event, const BudgetSet*) {
  if (bj::object* budget = object_in(event, "budget")) budget->erase("hard");
}
// Tasks waited for ever, nobody was moved, and nothing was lent twice.
void lift_from_2(bj::object& event, const SchedulingSet*) {
  bj::object* settings = object_in(event, "settings");
  if (settings == nullptr) return;
  settings->emplace("hold_expires", nullptr);
  settings->emplace("defrag", json::write(DefragSettings{}));
  settings->emplace("oversubscription", json::write(Oversubscription{}));
}
// What an invoice rounded was booked nowhere.
void lift_from_2(bj::object& event, const InvoiceIssued*) {
  bj::object* invoice = object_in(event, "invoice");
  const bj::value* currency = invoice == nullptr ? nullptr : invoice->if_contains("currency");
  if (currency == nullptr || !currency->is_string()) return;
  bj::string none("0 ");
  none += currency->get_string();
  invoice->emplace("rounding", std::move(none));
}

// Likewise for what version 3 did not have: lost work was billed for the time it ran.
template <class T>
void lift_from_3(bj::object&, const T*) {}

void lift_from_3(bj::object& event, const RateCardPublished*) {
  bj::object* card = object_in(event, "card");
  bj::object* terms = card == nullptr ? nullptr : object_in(*card, "terms");
  if (terms != nullptr) terms->emplace("lost_work", json::write(LostWork{}));
}
// Nobody ran on a reservation, and all could start at once.
void lift_from_3(bj::object& event, const TaskAccepted*) {
  event.emplace("not_before", 0);
  if (bj::object* spec = object_in(event, "spec")) spec->emplace("reservation", 0);
}
// It took in all that was charged.
void lift_from_3(bj::object& event, const InvoiceIssued*) {
  bj::object* invoice = object_in(event, "invoice");
  if (invoice == nullptr) return;
  if (const bj::value* to = invoice->if_contains("to")) {
    bj::value end = *to;
    invoice->emplace("months_to", std::move(end));
  }
  lift_lines(*invoice, "lines", lift_key);
}

// Capacity alone was committed.
void lift_from_3(bj::object& event, const CommitmentBought*) {
  bj::object* commitment = object_in(event, "commitment");
  bj::object* terms = commitment == nullptr ? nullptr : object_in(*commitment, "terms");
  const bj::value* price = terms == nullptr ? nullptr : terms->if_contains("unit_price");
  if (price == nullptr || !price->is_string()) return;
  const bj::string& text = price->get_string();
  bj::string none("0");
  none += text.subview(std::min(text.find(' '), text.size()));
  terms->emplace("spend", std::move(none));
}

// Likewise for what version 4 did not have: nobody was named as the seller, and spot tasks with a
// deadline just waited for spot.
template <class T>
void lift_from_4(bj::object&, const T*) {}

void lift_from_4(bj::object& event, const TaskAccepted*) {
  bj::object* spec = object_in(event, "spec");
  if (spec == nullptr) return;
  spec->emplace("spot_policy", "reserve");
  spec->emplace("changeover", nullptr);
}

void lift_from_4(bj::object& event, const InvoiceIssued*) {
  bj::object* invoice = object_in(event, "invoice");
  if (invoice == nullptr) return;
  invoice->emplace("seller", json::write(Seller{}));
  invoice->emplace("due", nullptr);
  invoice->emplace("due_at", nullptr);
}

// Likewise for what version 5 did not have: tasks waited for ever, took the compute that they
// stated, and had no backups.
template <class T>
void lift_from_5(bj::object&, const T*) {}

void lift_from_5(bj::object& event, const TaskAccepted*) {
  bj::object* spec = object_in(event, "spec");
  if (spec == nullptr) return;
  for (const char* none : {"wait_at_most", "auto_ce"}) spec->emplace(none, nullptr);
  spec->emplace("backups", 0);
}

template <class T>
Result<T> read_event(const EncodedEvent& encoded) {
  LOAM_TRY(document, json::parse_document(encoded.payload));
  if (document.is_object()) {
    const T* type = nullptr;
    if (encoded.version < 2 && T::version >= 2) lift_from_1(document.get_object(), type);
    if (encoded.version < 3 && T::version >= 3) lift_from_2(document.get_object(), type);
    if (encoded.version < 4 && T::version >= 4) lift_from_3(document.get_object(), type);
    if (encoded.version < 5 && T::version >= 5) lift_from_4(document.get_object(), type);
    if (encoded.version < 6 && T::version >= 6) lift_from_5(document.get_object(), type);
  }
  return json::from_value<T>(document, json::Missing::is_error, ErrorKind::corrupt);
}

template <class T>
bool decode_as(const EncodedEvent& encoded, Result<Event>& out) {
  if (encoded.type != T::type) return false;
  if (encoded.version < 1 || encoded.version > T::version) return false;
  auto event = read_event<T>(encoded);
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
