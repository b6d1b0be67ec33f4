// Auditor: keeps books of its own from the events alone and checks, always, what must hold
// whatever happens. It shares only the nouns with the engine: it prices, adds and counts by code
// of its own. The rules, numbered as the documents number them:
//
//    1  on every device what is promised fits, and all that strict leases and whole devices have is
//       promised; of others, what is lent stays within the factor; a whole device is alone
//    2  a gang starts whole or not at all
//    3  an accepted task is in one state and ends once
//    4  one live attempt per task; an old epoch changes nothing
//    5  what starts delays no plan that could be kept
//    6  a victim is of a lower level, borrows, or its queue preempts by its order; it has its grace
//    7  usage stays within the quota, and within the cohort's
//    8  usage records tile each lease; billed time is run time; the price is the card's
//    9  postings sum to zero; an invoice is the sum of its lines and of what was charged
//   10  invoices are numbered without gaps and never change
//   11  one request key, one effect
//   12  replay gives the same state (checked by whoever holds the journal)
//   13  nothing idles that a task at the head of the queue fits
//   14  what is reserved is there for its tenant, and is charged once, used or not
//   15  a spot task with a deadline is bought on demand while that still meets it
//   16  a task is moved only for a waiting one, which then starts, and within what is allowed
//
// Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "domain/event.hpp"

namespace loam::sim {

// The engine's end of the comparison: copies of its tables.
struct Seen {
  std::vector<Device> devices;
  std::vector<Tenant> tenants;
  std::vector<Task> tasks;
  std::vector<Lease> leases;
  std::vector<Reservation> reservations;
  std::map<Account, Money> balances;
};

class Auditor {
 public:
  // Takes in the next record. Afterwards broken() says what it broke, if anything.
  void hear(const Record& record);

  // Money and books agree with one another and with the engine's tables. Call between batches.
  void compare(const Seen& seen);
  // Everything has ended: nothing is held, nothing runs, nothing waits.
  void check_drained();
  // Rule 13, by trying every device: call when nothing is due. Looks at money not at all, so only
  // where every tenant has plenty.
  void check_nothing_idles();
  // Rule 8 against the nodes: what ran, by the node's own stopwatch.
  void check_ran(LeaseId lease, Duration ran);
  // Rule 6 against the nodes: one that was killed had been told `noticed` before.
  void check_notice(LeaseId lease, Duration noticed);

  // The first rule broken, in words: "rule 8: …"; empty while all is well.
  const std::string& broken() const { return broken_; }
  std::size_t tasks_accepted() const { return tasks_accepted_; }
  std::size_t records() const { return records_; }

 private:
  enum class Stage { waiting, leased, paused, between };
  struct TaskBook {
    TaskId id;
    TenantId tenant;
    TaskSpec spec;
    Stage stage = Stage::waiting;
    std::set<LeaseId> leases;  // live
    std::int64_t granted = 0;  // members of this epoch
    Epoch epoch;
    Money held;
    Money rated;    // Σ net of its usage records
    Money charged;  // Σ postings to revenue
    Duration ran;
    Instant arrival;  // in the queue, by its first coming or its last resuming, or when it is due
    Instant not_before;
    Instant waits_since;  // likewise, or since it last came back from a run
    Duration rounds;      // run in ended rounds, each its longest member
    Duration round;       // of this round's ended members, the longest
    std::optional<TaskPromised> promise;
    std::size_t promised_at = 0;       // of the promise, among all records
    bool planned_before = false;       // a promise of before the settings changed: none to judge by
    std::optional<Instant> unable_at;  // its last start failed then: it waits before the next
    bool moved = false;                // its queue's devices changed since it came
    bool sold_as_spot = false;         // its live leases are: others may displace it
    Mebibytes kept;                    // of its storage, while it has no lease
    Mebibytes backed_up;               // always
    std::optional<Instant> kept_from;  // not rated yet from then on
    std::optional<Money> services;     // of its storage and network, charged next, from the wallet
    std::optional<Duration> changeover;  // it is spot with a deadline: for the change to on demand
    std::optional<MoveBegun> move;       // it goes there once that is clear
    std::set<TaskId> moved_for_it;       // none once it has started or lost its place
    std::optional<Instant> clear_since;  // of those
    std::vector<Instant> preempted_at;   // since the scheduler took it in
    bool may_overrun = false;  // its stop took longer than the hold reckoned, or prices rose
  };
  struct LeaseBook {
    TaskId task;
    TenantId tenant;
    std::vector<Slice> slices;
    MilliCe ce;
    MilliCe billable;
    Instant granted_at;
    std::optional<Instant> started_at;
    Instant stop_at;
    Instant ends_by;        // by its limit, as far as is known
    Instant first_ends_by;  // the same, as it was when it was granted
    bool leaving = false;   // it was asked to stop
    ReservationId reservation;
    Instant rated_until;
    PurchaseModel purchase_model = PurchaseModel::on_demand;
    Isolation isolation = Isolation::software;
    Int128 worth = 0;  // Σ price × CE × time × what the discount leaves: its net, not yet divided
    Money net;         // Σ net
    std::optional<Instant> services_until;  // rated so far
    bool given_back = false;                // for an interruption: `worth` says nothing any more
    Duration billed;
  };
  // A right to capacity, and what of it was used, by hour.
  struct CommitmentEntry {
    Commitment commitment;
    Instant until;
  };
  struct CoverBook {
    std::vector<CommitmentEntry> commitments;
    std::map<Instant, Int128> covered;  // milli-CE × ms, by the hour's start
    Money given;                        // back for covered use, in all
    Money used;                         // net of all usage on demand
  };
  // A reservation as it lies now, and what of it was used and charged.
  struct ReservedUse {
    LeaseId lease;
    Instant from;
    Instant to;
    MilliCe ce;
  };
  struct ReservedPiece {  // in milli-CE × ms
    Instant to;
    Int128 unused = 0;  // charged
    Int128 beyond = 0;  // given back
  };
  struct ReservationEntry {
    Reservation reservation;
    Money held;          // by its postings
    Instant lies_since;  // there
    Instant heard_end;   // of its end
    bool irregular =
        false;  // its charges may pass what is held: prices rose, it moved, or the like
    std::vector<ReservedUse> uses;
    std::map<Instant, ReservedPiece> pieces;  // by their start; they tile what was charged
  };
  struct Load {
    MilliDevice share;
    Mebibytes memory;
  };
  struct DeviceBook {
    DeviceFacts facts;
    std::string name;
    MilliDevice used;
    Mebibytes memory_used;
    Load promised;  // of that, what its leases get when all are busy
    std::set<LeaseId> leases;
    bool healthy = true;
    bool draining = false;
    NodeId node;
  };
  struct TenantBook {
    TenantSpec spec;
    MilliCe ce_used;
    Mebibytes memory_used;
    MilliDevice devices_used;
    std::int64_t running = 0;
    // Charged and not invoiced, before tax and with it, by the month's end that was told.
    std::map<Instant, Money> uninvoiced;
    std::map<Instant, Money> due;
    Money owed;     // by the ledger: charged with tax and not invoiced, credit notes apart
    Money overrun;  // charges that no hold covered
  };

  void fail(int rule, const std::string& what);
  // Rounded up.
  static std::int64_t divided(std::int64_t amount, std::int64_t permille);
  Oversubscription lent_to(const TaskSpec& spec, std::int64_t share,
                           const DeviceBook& device) const;
  void check_lent(const TaskBook& book, const LeaseGranted& lease, const Slice& slice,
                  const DeviceBook& device);
  TaskBook* task(TaskId id, int rule);
  LeaseBook* lease(LeaseId id, int rule);

  void on(const Record&, const NodeAttached&);
  void on(const Record&, const DeviceAttached&);
  void on(const Record&, const DeviceHealthChanged&);
  void on(const Record&, const DeviceDrainChanged&);
  void on(const Record&, const TenantCreated&);
  void on(const Record&, const TenantChanged&);
  void on(const Record&, const RateCardPublished&);
  void on(const Record&, const TransactionPosted&);
  void on(const Record&, const TaskAccepted&);
  void on(const Record&, const LeaseGranted&);
  void on(const Record&, const AttemptStarted&);
  void on(const Record&, const StopRequested&);
  void on(const Record&, const UsageRated&);
  void on(const Record&, const LeaseEnded&);
  void on(const Record&, const TaskRequeued&);
  void on(const Record&, const TaskPaused&);
  void on(const Record&, const TaskFinished&);
  void on(const Record&, const InvoiceIssued&);
  void on(const Record&, const RequestRecorded&);
  void on(const Record&, const RequestsForgotten&);
  void on(const Record&, const CreditNoteIssued&);
  void on(const Record&, const SpotPriceMoved&);
  void on(const Record&, const HoldsReviewed&) {}
  void on(const Record&, const BudgetSet&) {}
  void on(const Record&, const BudgetRemoved&) {}
  void on(const Record&, const BudgetNoticed&) {}
  void on(const Record&, const BudgetApproved&) {}
  void on(const Record&, const SellerSet&) {}
  void on(const Record&, const SchedulingSet&);
  void on(const Record&, const TaskPromised&);
  void on(const Record&, const PromiseDropped&);
  void on(const Record&, const NodeMarked&);
  void on(const Record&, const CommitmentBought&);
  void on(const Record&, const CommitmentCharged&);
  void on(const Record&, const CommitmentEnded&);
  void on(const Record&, const UseCovered&);
  void on(const Record&, const ShortfallCredited&);
  void on(const Record&, const TokensUsed&);
  void on(const Record&, const LostWorkCredited&);
  void on(const Record&, const TaskLate&);
  void on(const Record&, const ServicesUsed&);
  void on(const Record&, const ReservationMade&);
  void on(const Record&, const ReservationMoved&);
  void on(const Record&, const ReservationCharged&);
  void on(const Record&, const ReservationEnded&);
  void on(const Record&, const ReservationHeld&);
  void on(const Record&, const SpotPlanned&);
  void on(const Record&, const SpotSighted&) {}
  void on(const Record&, const DeadlineNoticed&);
  void on(const Record&, const MoveBegun&);

  const RateCard* card_at(Currency currency, Instant instant) const;
  const RateCard* card_for(const LeaseBook& book, const TaskBook& owner, Currency currency,
                           Instant instant) const;
  void check_rating(LeaseBook& book, const TaskBook& owner, const UsageRecord& usage,
                    const RateCard& card);
  void check_price(const LeaseBook& book, const TaskBook& owner, const UsageRecord& usage,
                   const RateCard& card);
  Int128 worth_of(const LeaseBook& book, const TaskBook& owner, const UsageRecord& usage,
                  const RateCard& card);
  void take_devices(const TaskBook& book, const LeaseGranted& event, TenantBook& tenant);
  void check_quota(const TenantBook& tenant);
  void check_cohort(const Quota& of);
  void check_wallet(TenantId id);
  void check_payment(const Transaction& transaction, TenantBook& tenant);
  void owe(TenantId tenant, const AdjustmentLine& line);
  void owe(TenantBook& tenant, RateCardId card, Money net, Instant month_end);
  void check_month(TenantBook& tenant, const UsageRecord& usage);
  void check_kept(const TaskBook& book, Instant until);
  void check_expired(const TaskBook& book, Instant at);
  // Whether all its members fit, given the leases that are there now (at: none), or that will be
  // there then by their limits; on devices of `types` alone where there are any.
  bool fits_somewhere(const TaskSpec& spec, std::optional<Instant> at,
                      const std::set<std::string>& types = {}) const;
  std::int64_t slices_on(const DeviceBook& device, const TaskSpec& spec,
                         std::optional<Instant> at) const;
  bool fits_as_promised(const TaskBook& book) const;
  bool is_overtaken(const TaskBook& book) const;
  bool follows_late(const TaskBook& book) const;
  bool goes_before(const TaskBook& started, const TaskBook& planned) const;
  std::int64_t key_of(const TaskBook& book) const;
  std::optional<Instant> still_to_come(Instant start) const;
  bool is_on_marked(const std::string& device) const;
  const QueueSettings& queue_of(const TaskSpec& spec) const;
  // Whether its queue's tasks may have the device.
  bool admits(const TaskSpec& spec, const DeviceBook& device) const;
  std::int64_t level_of(const TaskSpec& spec) const;
  std::vector<TaskId> plans_that_hold() const;
  static bool is_at(const std::vector<PromisedMember>& members, DeviceId device);
  static bool share_device(const std::vector<PromisedMember>& a,
                           const std::vector<PromisedMember>& b);
  static void forget_place(TaskBook& book);
  void forget_places_on(DeviceId device);
  void check_move_budget(const TaskBook& book, const MoveBegun& event);
  void check_protection(const TaskBook& book, Instant at);
  void check_askers_promised();
  void check_askers_started();
  void check_plans_kept(TaskId started, const TaskBook& book);
  void check_deadlines();
  void check_victims(const TaskBook& asker);
  void check_covers();

  ReservationEntry* reservation(ReservationId id);
  // Who pays for what the task runs: its reservation until its last hour is charged, else nullptr.
  ReservationEntry* payer_of(const TaskBook& book);
  void book_held(const Transaction& transaction, TenantBook& tenant);
  void check_held();
  void check_reservations(const Seen& seen);
  void check_reservations_over();
  void check_members(const ReservationEntry& entry);
  void check_on_reservation(const TaskBook& book, const LeaseBook& lease, LeaseId id);
  void check_beside_reservations(const LeaseBook& granted);
  void note_reserved_use(const LeaseBook& book, const UsageRecord& usage);
  void check_unused_line(const AdjustmentLine& line, const std::string& what);
  static std::pair<Int128, Int128> unused_and_beyond(const ReservationEntry& entry, Instant from,
                                                     Instant to);
  // What reservations that cover the instant lock of a device, and what others will have of it
  // then; spot that has to leave in time does not count where it still may be there.
  Load locked_on(const DeviceBook& device, Instant at) const;
  Load others_on(const DeviceBook& device, Instant at, bool spot_leaves) const;
  void check_locked(DeviceId device, Instant at, bool spot_leaves);
  bool makes_room_for_reservation(const LeaseBook& book, const TaskBook& owner) const;
  // What may never be somebody's who has no reservation there.
  Load reserved_on(const DeviceBook& device) const;

  std::string broken_;
  std::uint64_t sequence_ = 0;
  Instant now_;
  std::size_t records_ = 0;
  std::size_t tasks_accepted_ = 0;
  struct NodeBook {
    std::string name;
    std::string region;
    std::vector<std::string> labels;
  };
  std::vector<NodeBook> nodes_;
  std::vector<DeviceBook> devices_;
  std::vector<TenantBook> tenants_;
  std::vector<RateCard> cards_;
  std::map<TaskId, TaskBook> tasks_;
  std::map<LeaseId, LeaseBook> leases_;
  std::map<LeaseId, Duration> billed_;  // of ended leases
  std::map<LeaseId, Duration> graces_;  // of those that were asked to leave for others alone
  std::map<Account, Money> balances_;
  std::map<std::pair<std::string, std::string>, Instant> requests_;
  TaskId last_task_;
  LeaseId last_lease_;
  UsageId last_usage_;
  // Milli-CE × ms under tiered prices, by the month's start: where tiers stand.
  std::map<std::tuple<TenantId, PurchaseModel, Instant>, Int128> in_tiers_;
  InvoiceId last_invoice_;
  CreditNoteId last_note_;
  std::map<InvoiceId, Money> to_give_back_;  // of each invoice, taxes included
  std::map<TransactionId, Money> payments_;  // into wallets, or out of them; what was not reversed
  std::map<Currency, Instant> spot_moved_at_;
  SchedulingSettings settings_;
  Oversubscription lent_;    // the largest factors so far: a promise keeps those it was made by
  std::set<NodeId> marked_;  // nodes that get no leases
  std::vector<std::pair<Instant, TaskId>> moves_;  // within an hour
  std::set<TaskId> begun_;          // others make room for them, and they are promised a start next
  std::set<TaskId> victims_;        // asked to leave since the last record that was no such request
  std::vector<TaskId> plans_kept_;  // that held before the present grant
  std::map<TenantId, CoverBook> covers_;
  std::map<ReservationId, ReservationEntry> reservations_;
  ReservationId last_reservation_;
  ReservationId paying_;  // whose money the next postings move
};

}  // namespace loam::sim
