#include "domain/ledger.hpp"

#include <boost/describe/enum_to_string.hpp>

namespace loam {

std::string to_text(const Account& account) {
  std::string text = boost::describe::enum_to_string(account.kind, "");
  if (account.tenant.valid()) text += ":" + account.tenant.text();
  return text + ":" + std::string(account.currency.code());
}

}  // namespace loam
