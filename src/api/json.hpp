// The API's shapes to JSON and back, so that nobody else here sees the JSON library. Pure.
#pragma once

#include <string>
#include <string_view>

#include "api/money_types.hpp"
#include "api/types.hpp"
#include "base/result.hpp"

namespace loam::api {

// Every shape of the API by name: requests, then what is answered.
#define LOAM_API_REQUESTS(X) \
  X(TaskRequest)             \
  X(TenantRequest)           \
  X(TenantPatch)             \
  X(TopUpRequest)            \
  X(RateRequest)             \
  X(InvoiceRequest)          \
  X(TokenRequest)            \
  X(BackupRequest)           \
  X(CreditRequest)           \
  X(BudgetRequest)           \
  X(BudgetAnswer)            \
  X(CommitmentRequest)       \
  X(ReservationRequest)      \
  X(TokenUsageRequest)       \
  X(PartyRequest)            \
  X(ReverseRequest) X(CancelRequest)
#define LOAM_API_VIEWS(X) \
  X(HealthView)           \
  X(WhoAmIView)           \
  X(QuoteView)            \
  X(TaskView)             \
  X(TaskPage)             \
  X(LeasePage)            \
  X(CapacityList)         \
  X(LogView)              \
  X(DeviceView)           \
  X(DeviceList)           \
  X(ProgressView)         \
  X(TenantView)           \
  X(TenantList)           \
  X(RateView)             \
  X(RateList)             \
  X(SpotPriceList)        \
  X(BillView)             \
  X(BillList)             \
  X(InvoiceView)          \
  X(InvoiceList)          \
  X(LedgerView)           \
  X(CreditNoteView)       \
  X(BudgetView)           \
  X(BudgetList)           \
  X(CommitmentView)       \
  X(CommitmentList)       \
  X(ReservationQuoteView) \
  X(ReservationView)      \
  X(ReservationList)      \
  X(TokenUsageView)       \
  X(PartyView)            \
  X(TokenView) X(TokenList) X(BackupView) X(ReloadView) X(TopView) X(Problem)

// The JSON text of a shape, members in the order of its declaration: also what `--json` prints.
#define LOAM_API_TO_JSON(Type) std::string to_json(const Type& value);
LOAM_API_REQUESTS(LOAM_API_TO_JSON)
LOAM_API_VIEWS(LOAM_API_TO_JSON)
#undef LOAM_API_TO_JSON

// Reads one of the shapes above. Requests: a member left out gets its default. Views: every
// member must be there. Either way an unknown member is an error, and the error names the place.
// What cannot be read is invalid_argument.
template <class T>
Result<T> from_json(std::string_view text);

}  // namespace loam::api
