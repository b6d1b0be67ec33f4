// What a rate card may say beyond its one on-demand price: prices by how, when and on what a task
// runs, windows of the local week, tiers, discounts, taxes. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/money.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"
#include "domain/device.hpp"
#include "domain/task.hpp"

namespace loam {

// The unit in which a lease's run time is billed: exact as measured, or every unit that was begun,
// counted from the start of the run. task: once a run, however long it is; the price is per task.
BOOST_DEFINE_ENUM_CLASS(Granularity, exact, second, minute, hour, task)
// graduated: each tier's price for what lies in it. volume: one price for all, by the tier reached.
BOOST_DEFINE_ENUM_CLASS(TierMode, graduated, volume)
// What a piece of work costs that an interruption cut short: what it ran, nothing, or nothing where
// it had run less than an hour.
BOOST_DEFINE_ENUM_CLASS(InterruptionRule, ran, free, first_hour_free)

// A part of the local week, or of one local day.
struct Window {
  std::string name;                    // "peak"; windows of one name have one price
  std::vector<std::int64_t> weekdays;  // 0 = Sunday … 6; empty: every day
  std::string date;                    // "2026-12-25": that day only, before any weekly window
  Duration from;                       // local time of day
  Duration to;                         // half open, at most 24 h; not after `from`: the next day

  friend bool operator==(const Window&, const Window&) = default;
};
BOOST_DESCRIBE_STRUCT(Window, (), (name, weekdays, date, from, to))

struct Tier {
  std::int64_t above_milli_ce_hours = 0;  // of the tenant's calendar month under this model
  Money price;                            // per CE-hour (granularity task: per task)

  friend bool operator==(const Tier&, const Tier&) = default;
};
BOOST_DESCRIBE_STRUCT(Tier, (), (above_milli_ce_hours, price))

// One price. The most specific one that matches is taken: a work class counts before an isolation
// level, that before a service class.
struct Price {
  PurchaseModel purchase_model = PurchaseModel::on_demand;
  Tariff tariff = Tariff::flat;
  std::string window;                   // of time_of_day
  std::optional<WorkClass> work_class;  // absent: any
  std::optional<Isolation> isolation;   // absent: any
  std::string service_class;            // empty: any
  TierMode tier_mode = TierMode::graduated;
  std::vector<Tier> tiers;  // rising from 0

  friend bool operator==(const Price&, const Price&) = default;
};
BOOST_DESCRIBE_STRUCT(Price, (),
                      (purchase_model, tariff, window, work_class, isolation, service_class,
                       tier_mode, tiers))

// Off the list price; those that apply add up, together with the tenant's own, to at most the
// whole.
struct Discount {
  std::string name;
  BasisPoints off;
  std::optional<PurchaseModel> purchase_model;  // absent: all

  friend bool operator==(const Discount&, const Discount&) = default;
};
BOOST_DESCRIBE_STRUCT(Discount, (), (name, off, purchase_model))

// A line of an invoice over its sum before tax.
struct Tax {
  std::string name;
  std::int64_t parts_per_million = 0;  // 190,000 = 19 %

  friend bool operator==(const Tax&, const Tax&) = default;
};
BOOST_DESCRIBE_STRUCT(Tax, (), (name, parts_per_million))

// What a million tokens of a model cost. Absent: not charged, but that cached tokens without a
// price of their own cost what the prompt's do.
struct TokenPrice {
  std::string model = "*";  // a name, the beginning of names and '*', or '*' for all
  std::optional<Money> prompt;
  std::optional<Money> cached;  // of the prompt, taken from a stored prefix
  std::optional<Money> generated;

  friend bool operator==(const TokenPrice&, const TokenPrice&) = default;
};
BOOST_DESCRIBE_STRUCT(TokenPrice, (), (model, prompt, cached, generated))

// How the spot price is made, in shares of the on-demand price.
struct SpotTerms {
  BasisPoints floor{1500};  // never below 15 %
  BasisPoints ceiling{10'000};
  InterruptionRule interrupted = InterruptionRule::ran;
  bool sold = false;

  friend bool operator==(const SpotTerms&, const SpotTerms&) = default;
};
BOOST_DESCRIBE_STRUCT(SpotTerms, (), (floor, ceiling, interrupted, sold))

// What a run costs that was cut short without its fault and did not end its work. Spot that is
// displaced goes by its own rule.
struct LostWork {
  InterruptionRule displaced = InterruptionRule::ran;    // it had to make room for others
  InterruptionRule device_lost = InterruptionRule::ran;  // its device or node was lost

  friend bool operator==(const LostWork&, const LostWork&) = default;
};
BOOST_DESCRIBE_STRUCT(LostWork, (), (displaced, device_lost))

// What is sold besides compute; absent: not charged.
struct ServiceRates {
  std::optional<Money> storage;  // per GiB-hour held
  std::optional<Money> backup;   // per GiB-hour held
  std::optional<Money> network;  // per GiB moved

  friend bool operator==(const ServiceRates&, const ServiceRates&) = default;
};
BOOST_DESCRIBE_STRUCT(ServiceRates, (), (storage, backup, network))

struct PriceTerms {
  Granularity granularity = Granularity::exact;
  std::string zone = "UTC";  // of the windows and of the month that tiers count in
  std::vector<Window> windows;
  std::vector<Price> prices;
  ServiceRates services;
  std::vector<Discount> discounts;
  std::vector<Tax> taxes;
  SpotTerms spot;
  BasisPoints reservation_unused{10'000};  // share of the price that unused reserved time costs
  std::vector<TokenPrice> tokens;
  LostWork lost_work;

  friend bool operator==(const PriceTerms&, const PriceTerms&) = default;
};
BOOST_DESCRIBE_STRUCT(PriceTerms, (),
                      (granularity, zone, windows, prices, services, discounts, taxes, spot,
                       reservation_unused, tokens, lost_work))

}  // namespace loam
