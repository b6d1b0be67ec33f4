// Tenants, prices, bills, invoices and the ledger.
#include <future>

#include "api/handlers.hpp"
#include "api/page.hpp"
#include "api/requests.hpp"
#include "base/currency_codes.hpp"

namespace loam::api::handlers {
namespace {

std::string tenant_json(Backend& backend, TenantId id) {
  TenantView view;
  backend.read(
      [&](const engine::State& state, Instant) { view = view_of(state, state.tenant(id)); });
  return to_json(view);
}

Call::SubjectView tenant_answer(const CallPtr& call) {
  return [call](const std::string& subject) -> Result<std::string> {
    const auto id = TenantId::parse(subject);
    LOAM_ASSERT(id.has_value());
    return tenant_json(call->backend(), *id);
  };
}

Error no_invoice(const std::string& id_text) {
  // "1" for "inv-1" is a slip that can be named.
  const bool number = !id_text.empty() && id_text.size() < 10 &&
                      id_text.find_first_not_of("0123456789") == std::string::npos;
  return {ErrorKind::not_found, "there is no invoice " + id_text,
          (number ? "did you mean inv-" + id_text + "? " : std::string()) +
              "see the invoices with: loam invoice list"};
}

Result<std::string> invoice_json(Call& call, const std::string& id_text) {
  const Error missing = no_invoice(id_text);
  const auto id = InvoiceId::parse(id_text);
  if (!id) return missing;
  LOAM_TRY(record, call.backend().invoice(*id));
  if (!record) return missing;
  std::string owner;
  call.backend().read([&](const engine::State& state, Instant) {
    owner = tenant_name(state, record->invoice.tenant);
  });
  if (call.caller.role == Role::member && owner != call.caller.tenant) return missing;
  CreditNoteFilter filter;
  filter.invoice = *id;
  LOAM_TRY(notes, call.backend().credit_notes(filter));
  LOAM_TRY(buyer, call.backend().buyer(record->invoice.tenant, record->issued_at));
  InvoiceView view = view_of(*record, owner, buyer, notes);
  for (const CreditNoteRecord& note : notes) view.credits.push_back(view_of(note, owner));
  return to_json(view);
}

Result<std::string> credit_note_json(Call& call, const std::string& id_text) {
  const Error missing{ErrorKind::not_found, "there is no credit note " + id_text,
                      "see them with the invoice: loam invoice show ID"};
  const auto id = CreditNoteId::parse(id_text);
  if (!id) return missing;
  CreditNoteFilter filter;
  filter.only = *id;
  LOAM_TRY(notes, call.backend().credit_notes(filter));
  if (notes.empty()) return missing;
  std::string owner;
  call.backend().read([&](const engine::State& state, Instant) {
    owner = tenant_name(state, notes.front().note.tenant);
  });
  if (call.caller.role == Role::member && owner != call.caller.tenant) return missing;
  return to_json(view_of(notes.front(), owner));
}

// Into a wallet, or out of it.
template <class Move>
void move_money(const CallPtr& call) {
  const auto tenant = call->tenant(call->parameter("name"));
  if (!tenant) return call->fail(tenant.error());
  const auto command = [&]() -> Result<Move> {
    LOAM_TRY(request, body_of<TopUpRequest>(*call));
    LOAM_TRY(amount, amount_of(request, tenant->currency));
    return Move{tenant->id, amount, request.note};
  }();
  if (!command) return call->fail(command.error());
  call->post(*command, [call, id = tenant->id](const std::string&) -> Result<std::string> {
    return tenant_json(call->backend(), id);
  });
}

}  // namespace

void list_tenants(const CallPtr& call) {
  TenantList list;
  call->backend().read([&](const engine::State& state, Instant) {
    for (const Tenant& tenant : state.tenants) {
      if (call->caller.role == Role::member && tenant.spec.name != call->caller.tenant) continue;
      list.tenants.push_back(view_of(state, tenant));
    }
  });
  call->answer(to_json(list));
}

void show_tenant(const CallPtr& call) {
  const auto tenant = call->tenant(call->parameter("name"));
  if (!tenant) return call->fail(tenant.error());
  call->answer(tenant_json(call->backend(), tenant->id));
}

void create_tenant(const CallPtr& call) {
  const auto spec = [&]() -> Result<TenantSpec> {
    LOAM_TRY(request, body_of<TenantRequest>(*call));
    return spec_of(request);
  }();
  if (!spec) return call->fail(spec.error());
  const std::string location = "/v1/tenants/" + spec->name;
  call->post(CreateTenant{*spec}, tenant_answer(call),
             [location](const std::string&) { return location; });
}

// Reads the tenant and writes it back as a whole, so that two changes at once must not overlap:
// the worker waits for its own command to be durable before the next one reads.
void change_tenant(const CallPtr& call) {
  const auto patch = body_of<TenantPatch>(*call);
  if (!patch) return call->fail(patch.error());
  const auto tenant = call->tenant(call->parameter("name"));
  if (!tenant) return call->fail(tenant.error());
  const std::lock_guard lock(call->core->patching);
  TenantSpec present;
  call->backend().read(
      [&](const engine::State& state, Instant) { present = state.tenant(tenant->id).spec; });
  const auto spec = patched(std::move(present), *patch);
  if (!spec) return call->fail(spec.error());
  const auto answered = std::make_shared<std::promise<engine::Answer>>();
  auto answer = answered->get_future();
  call->backend().post(ChangeTenant{tenant->id, *spec}, call->caller.actor, call->key,
                       [answered](const engine::Answer& given) { answered->set_value(given); });
  constexpr std::chrono::seconds patience{30};  // longer than any disk is slow
  if (answer.wait_for(patience) != std::future_status::ready) {
    return call->fail(Error{ErrorKind::unavailable, "the journal did not answer in time",
                            "look at the tenant before you try again"});
  }
  const engine::Answer given = answer.get();
  if (given.error) return call->fail(*given.error);
  if (given.reject) return call->fail(*given.reject);
  call->answer(tenant_json(call->backend(), tenant->id));
}

void top_up(const CallPtr& call) {
  move_money<TopUp>(call);
}

void pay_out(const CallPtr& call) {
  move_money<PayOut>(call);
}

void show_buyer(const CallPtr& call) {
  call->finish([&]() -> Result<std::string> {
    LOAM_TRY(tenant, call->tenant(call->parameter("name")));
    Instant now;
    call->backend().read([&](const engine::State&, Instant at) { now = at; });
    LOAM_TRY(party, call->backend().buyer(tenant.id, now));
    return to_json(view_of(party));
  }());
}

void set_buyer(const CallPtr& call) {
  call->finish([&]() -> Result<std::string> {
    LOAM_TRY(tenant, call->tenant(call->parameter("name")));
    LOAM_TRY(request, body_of<PartyRequest>(*call));
    constexpr std::size_t text_max = 1000;
    for (const std::string* text : {&request.name, &request.address, &request.tax_id}) {
      if (text->size() > text_max)
        return invalid("a text of " + std::to_string(text->size()) + " bytes is too long",
                       "the most is " + std::to_string(text_max));
    }
    const Party party{request.name, request.address, request.tax_id};
    Instant now;
    call->backend().read([&](const engine::State&, Instant at) { now = at; });
    LOAM_CHECK(call->backend().set_buyer(tenant.id, party, now));
    return to_json(view_of(party));
  }());
}

void reverse_transaction(const CallPtr& call) {
  const auto request = body_of<ReverseRequest>(*call);
  if (!request) return call->fail(request.error());
  const std::string id_text = call->parameter("id");
  const auto id = TransactionId::parse(id_text);
  if (!id) {
    return call->fail(Error{ErrorKind::not_found, "there is no transaction " + id_text,
                            "see them with: loam ledger TENANT"});
  }
  TenantId owner;
  call->backend().read([&](const engine::State& state, Instant) {
    if (const auto found = state.payments.find(*id); found != state.payments.end())
      owner = found->second.tenant;
  });
  call->post(ReverseTransaction{*id, request->note},
             [call, owner](const std::string&) -> Result<std::string> {
               return tenant_json(call->backend(), owner);
             });
}

void list_rates(const CallPtr& call) {
  RateList list;
  call->backend().read([&](const engine::State& state, Instant) {
    for (const auto& table : state.rates.all()) list.rates.push_back(view_of(table->card()));
  });
  call->answer(to_json(list));
}

void publish_rate(const CallPtr& call) {
  const auto card = [&]() -> Result<RateCard> {
    LOAM_TRY(request, body_of<RateRequest>(*call));
    return card_of(request);
  }();
  if (!card) return call->fail(card.error());
  call->post(PublishRateCard{*card}, [call](const std::string& subject) -> Result<std::string> {
    std::string json;
    call->backend().read([&](const engine::State& state, Instant) {
      const auto id = RateCardId::parse(subject);
      LOAM_ASSERT(id.has_value());
      json = to_json(view_of(state.card(*id).card()));
    });
    return json;
  });
}

void list_invoices(const CallPtr& call) {
  call->finish([&]() -> Result<std::string> {
    LOAM_TRY(tenant, call->tenant_filter(call->query("tenant")));
    LOAM_TRY(limit, page_limit(*call));
    LOAM_TRY(after, page_after<InvoiceId>(*call));
    const auto only = tenant ? std::optional(tenant->id) : std::nullopt;
    LOAM_TRY(records, call->backend().invoices(only, after, limit + 1));
    InvoiceList list;
    list.next =
        cut_to_page(records, limit, [](const InvoiceRecord& one) { return one.invoice.id; });
    CreditNoteFilter filter;
    if (tenant) filter.tenant = tenant->id;
    LOAM_TRY(notes, call->backend().credit_notes(filter));
    std::vector<Party> buyers;
    for (const InvoiceRecord& record : records) {
      LOAM_TRY(buyer, call->backend().buyer(record.invoice.tenant, record.issued_at));
      buyers.push_back(std::move(buyer));
    }
    call->backend().read([&](const engine::State& state, Instant) {
      for (std::size_t i = 0; i < records.size(); ++i) {
        const std::string owner = tenant_name(state, records[i].invoice.tenant);
        list.invoices.push_back(view_of(records[i], owner, buyers[i], notes));
      }
    });
    return to_json(list);
  }());
}

void show_invoice(const CallPtr& call) {
  call->finish(invoice_json(*call, call->parameter("id")));
}

void issue_invoice(const CallPtr& call) {
  const auto request = body_of<InvoiceRequest>(*call);
  if (!request) return call->fail(request.error());
  const auto tenant = call->tenant(request->tenant);
  if (!tenant) return call->fail(tenant.error());
  IssueInvoice command{tenant->id, {}};
  if (request->month) {
    billing::Zone zone;
    call->backend().read([&](const engine::State& state, Instant) {
      zone = state.zones.at(state.tenant(tenant->id).spec.billing_zone);
    });
    const auto month = billing::parse_month(zone, *request->month);
    if (!month) return call->fail(month.error());
    command.to = month->to;
  }
  call->post(
      command, [call](const std::string& subject) { return invoice_json(*call, subject); },
      [](const std::string& subject) { return "/v1/invoices/" + subject; });
}

void credit_invoice(const CallPtr& call) {
  const auto command = [&]() -> Result<CreditInvoice> {
    LOAM_TRY(request, body_of<CreditRequest>(*call));
    const std::string id_text = call->parameter("id");
    const Error missing = no_invoice(id_text);
    const auto id = InvoiceId::parse(id_text);
    if (!id) return missing;
    LOAM_TRY(record, call->backend().invoice(*id));
    if (!record) return missing;
    CreditInvoice asked{*id, std::nullopt, request.reason};
    if (request.amount) {
      LOAM_TRY(amount, Money::parse(*request.amount, record->invoice.currency));
      LOAM_TRY(paid, payable(amount));
      asked.net = paid;
    }
    return asked;
  }();
  if (!command) return call->fail(command.error());
  call->post(*command, [call](const std::string& subject) -> Result<std::string> {
    return credit_note_json(*call, subject);
  });
}

void show_credit_note(const CallPtr& call) {
  call->finish(credit_note_json(*call, call->parameter("id")));
}

void spot_prices(const CallPtr& call) {
  call->finish([&]() -> Result<std::string> {
    const std::string code = call->query("currency");
    LOAM_TRY(currency, listed_currency(code.empty() ? "USD" : code));
    LOAM_TRY(from, call->instant("from"));
    LOAM_TRY(until, call->instant("to"));
    LOAM_TRY(limit, page_limit(*call));
    SpotPriceList list;
    list.currency = std::string(currency.code());
    Instant now;
    call->backend().read([&](const engine::State& state, Instant at) {
      now = at;
      if (const auto* table = state.rates.at(currency, at))
        list.on_demand = amount_text(table->card().on_demand);
    });
    const Instant to = until.value_or(now + Duration{1});
    LOAM_TRY(records, call->backend().spot_prices(currency, from.value_or(to), to, limit));
    std::string end = until ? to_text(*until) : std::string();
    for (const SpotPriceRecord& record : records) {
      list.prices.push_back({to_text(record.from), end, amount_text(record.price),
                             to_text(record.supply), to_text(record.demand)});
      end = to_text(record.from);
    }
    return to_json(list);
  }());
}

void ledger(const CallPtr& call) {
  call->finish([&]() -> Result<std::string> {
    LOAM_TRY(tenant, call->tenant(call->query("tenant")));
    LOAM_TRY(limit, page_limit(*call));
    LOAM_TRY(after, page_after<TransactionId>(*call));
    LOAM_TRY(records, call->backend().transactions(tenant.id, after, limit + 1));
    LedgerView view;
    view.tenant = tenant.name;
    view.currency = std::string(tenant.currency.code());
    view.next = cut_to_page(records, limit,
                            [](const TransactionRecord& one) { return one.transaction.id; });
    for (const TransactionRecord& record : records) view.entries.push_back(view_of(record));
    call->backend().read([&](const engine::State& state, Instant) {
      const TenantView balances = view_of(state, state.tenant(tenant.id));
      view.wallet = balances.wallet;
      view.held = balances.held;
    });
    return to_json(view);
  }());
}

}  // namespace loam::api::handlers
