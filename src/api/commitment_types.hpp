// The API's shapes of commitments and tokens, and of what is charged or given back besides usage.
// Part of api/money_types.hpp. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace loam::api {

// What is charged or given back besides usage.
struct AdjustmentView {
  std::string kind;  // fee, covered, credit, prompt_tokens, cached_tokens, generated_tokens,
                     // token_income, storage, backup, network, unused, credit_note, rounding
  std::string from;
  std::string to;
  std::string commitment;   // of a fee
  std::string lease;        // whose use it charges or gives back
  std::string reservation;  // of unused, and of covered where it took more than was reserved
  std::string task;         // whose it is: its lease's, or where its storage lies; empty: nobody's
  std::string name;         // the task's
  std::string project;
  std::string environment;
  std::string model;
  std::string model_version;
  std::string group;                        // the task's
  std::map<std::string, std::string> tags;  // the task's; else of what was bought, or a request's
  std::string purchase_model;
  std::string tariff;
  std::string window;
  std::string region;       // where it ran, or is kept; empty: nowhere, or in several
  bool correction = false;  // of a month that was invoiced before it was told
  std::string unit_price;   // list, per CE-hour, million tokens, GiB-hour or GiB
  std::string ce_hours;     // rounded to 6 decimals, for people; the amounts are exact
  std::int64_t tokens = 0;
  std::string gib;  // GiB-hours of storage and backups, GiB of network, likewise; empty for others
  std::string list;
  std::string net;      // below zero: given back
  std::string invoice;  // that it is on, or that a credit note gives back of; empty: none yet
  std::string note;     // credit_note: its id

  // Of a document, not of what was used: has no project, and is exported with its document.
  bool of_document() const { return kind == "credit_note" || kind == "rounding"; }
};
BOOST_DESCRIBE_STRUCT(AdjustmentView, (),
                      (kind, from, to, commitment, lease, reservation, task, name, project,
                       environment, model, model_version, group, tags, purchase_model, tariff,
                       window, region, correction, unit_price, ce_hours, tokens, gib, list, net,
                       invoice, note))

// POST /v1/token-usage: what a gateway counted, since its last report.
struct TokenUseEntry {
  std::string tenant;  // who called
  std::string owner;   // whose model it is; may be empty
  std::string project = "default";
  std::string environment = "default";
  std::string model;
  std::string from;
  std::string to;
  std::int64_t requests = 0;
  std::int64_t prompt_tokens = 0;  // whole prompts
  std::int64_t cached_tokens = 0;  // of these
  std::int64_t generated_tokens = 0;
  std::map<std::string, std::string> tags;  // of the caller's cost
  // Of the owner's income: as the cost of its instances.
  std::string owner_project = "default";
  std::string owner_environment = "default";
  std::map<std::string, std::string> owner_tags;
};
BOOST_DESCRIBE_STRUCT(TokenUseEntry, (),
                      (tenant, owner, project, environment, model, from, to, requests,
                       prompt_tokens, cached_tokens, generated_tokens, tags, owner_project,
                       owner_environment, owner_tags))

struct TokenUsageRequest {
  std::string source;
  std::int64_t sequence = 0;  // rises with every report
  std::vector<TokenUseEntry> uses;
};
BOOST_DESCRIBE_STRUCT(TokenUsageRequest, (), (source, sequence, uses))

struct TokenUsageView {
  std::string source;
  std::int64_t sequence = 0;         // recorded up to here; 0: nothing yet
  std::vector<std::string> refused;  // entries that nobody can be charged for, and why
};
BOOST_DESCRIBE_STRUCT(TokenUsageView, (), (source, sequence, refused))

// POST /v1/commitments. Days are those of the rate card's zone; an instant stands for its day.
struct CommitmentRequest {
  std::string tenant;
  std::string ce;                     // this, or `spend`
  std::string period = "month";       // month, quarter, year
  std::optional<std::string> from;    // default: today
  std::optional<std::string> until;   // not included; default: one period later
  std::optional<std::string> anchor;  // periods begin on its day of the month; default: `from`
  std::string project = "default";
  std::string environment = "default";
  std::string model;                 // "name", or "name@version"
  std::optional<std::string> spend;  // money an hour, in the tenant's currency
  std::map<std::string, std::string> tags;
};
BOOST_DESCRIBE_STRUCT(CommitmentRequest, (),
                      (tenant, ce, period, from, until, anchor, project, environment, model, spend,
                       tags))

// POST /v1/commitments/{id}/cancel.
struct CancelRequest {
  std::string reason;
};
BOOST_DESCRIBE_STRUCT(CancelRequest, (), (reason))

struct CommitmentFeeView {
  std::string from;
  std::string to;
  std::int64_t days = 0;
  std::int64_t days_of_period = 0;
  std::string net;
  bool charged = false;
  std::string list = "0";  // before discounts
};
BOOST_DESCRIBE_STRUCT(CommitmentFeeView, (), (from, to, days, days_of_period, net, charged, list))

struct CommitmentView {
  std::string id;
  std::string tenant;
  std::string currency;
  std::string
      state;  // coming, in_force, over, unpaid, ending (cancelled, and paid so far), cancelled
  std::string ce;
  std::string period;
  std::string from;
  std::string to;          // where it ends before its time: then
  std::string unit_price;  // list, per CE-hour
  std::string project;
  std::string environment;
  std::string model;
  std::string model_version;
  std::vector<CommitmentFeeView> fees;
  std::string spend = "0";  // money an hour; 0: a capacity
  std::map<std::string, std::string> tags;
};
BOOST_DESCRIBE_STRUCT(CommitmentView, (),
                      (id, tenant, currency, state, ce, period, from, to, unit_price, project,
                       environment, model, model_version, fees, spend, tags))

struct CommitmentList {
  std::vector<CommitmentView> commitments;  // by id
};
BOOST_DESCRIBE_STRUCT(CommitmentList, (), (commitments))

}  // namespace loam::api
