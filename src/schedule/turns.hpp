// TurnBook: who gets the next turn on one device, and until when. Guaranteed shares are a credit in
// device time that grows with the clock and is spent by use (a deficit counter, Shreedhar &
// Varghese, "Efficient Fair Queueing Using Deficit Round Robin", SIGCOMM 1995); what idles goes to
// burstable leases by start-time fair queueing (Goyal, Vin & Cheng, SIGCOMM 1996). Kernels cannot
// be interrupted, so a lease may overdraw; the debt is repaid before it is served again.
//
// A service goes before everybody else and is waited for by nobody's turn: guests run in its gaps.
// Among equals, tasks of predictable length have fixed turns, short ones of unknown length turns
// that grow with their progress and shrink with the queue (schedule/quantum.hpp); whoever ends
// early is charged what it used, and the rest of its turn goes to the next.
//
// Pure: no clock, no I/O. Times are nanoseconds on the caller's clock and never fall. Memory is
// taken when a lease is added, never by a grant.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "schedule/quantum.hpp"

namespace loam::schedule {

enum class TurnKind : std::uint8_t { fixed, dynamic };

struct TurnTerms {
  std::int32_t share_milli = 0;   // 0..1000: guaranteed part of the device's time
  std::int32_t weight = 1;        // >= 1: part of what idles, if not strict
  bool strict = true;             // its share and no more
  std::int32_t cap_milli = 1000;  // 1..1000: never more than this part of the device's time
  Nanoseconds quantum_ns = 0;     // > 0: the length of one turn; of the first, where dynamic
  Nanoseconds linger_ns = 0;      // how long at least it is expected back when it falls idle

  TurnKind kind = TurnKind::fixed;
  bool service = false;  // goes first, and ends the turn of a lease that is none

  friend bool operator==(const TurnTerms&, const TurnTerms&) = default;
};

struct TurnChoice {
  struct Grant {
    std::uint64_t lease = 0;
    Nanoseconds until_ns = never_ns;  // never: until somebody else asks
  };
  std::optional<Grant> grant;
  // Without a grant: when a waiting lease becomes eligible. never: only when somebody asks.
  Nanoseconds look_again_ns = never_ns;
};

class TurnBook {
 public:
  // `quantum` bounds dynamic turns by the queue.
  explicit TurnBook(const QuantumTerms& quantum = {}) : quantum_(quantum) {}

  // Adds the lease or changes its terms.
  void set_terms(std::uint64_t lease, const TurnTerms& terms, Nanoseconds now);
  // Forgets the lease; if it holds the turn, the turn ends uncharged.
  void remove(std::uint64_t lease);
  // Says whether the lease wants a turn. Requires a known lease.
  void set_waiting(std::uint64_t lease, bool waiting, Nanoseconds now);

  // Grants the turn to the lease that is furthest behind its share, services before others; else to
  // a burstable one, again services first. A
  // program that waits for its kernel asks for the next one a moment later: while an owed lease's
  // turn has only just ended, nobody else gets time beyond their own share.
  // Requires that nobody holds it. Cost: linear in the leases on the device.
  TurnChoice choose(Nanoseconds now);
  // The holder's turn is over after `used_ns` of device time; it has had nothing on the device
  // since `idle_since_ns`. Requires a holder.
  void close(Nanoseconds used_ns, Nanoseconds idle_since_ns, Nanoseconds now);
  // The holder's turn is nearly over and it wants the next one too: if that would be its own,
  // charges `used_ns` and begins it at once, so that neither a switch nor the moment at which the
  // holder is between two commands costs it its share. Returns the new turn's end; nothing where
  // the next turn is somebody else's. Requires a holder. Cost: a copy of the book.
  std::optional<Nanoseconds> renew(Nanoseconds used_ns, Nanoseconds now);
  // How long the lease, having fallen idle, is expected back: its linger, or twice the time that it
  // lately took to ask again, where that is short.
  Nanoseconds patience_ns(std::uint64_t lease) const;

  std::optional<std::uint64_t> holder() const { return holder_; }
  // Whether a lease other than the holder waits and would be served at `now`.
  bool rival_ready(Nanoseconds now);
  // Whether the holder is no service and one waits that would be served at `now`: the turn is to
  // end at once, and what the holder has in flight is all that the service waits for.
  bool service_kept_waiting(Nanoseconds now);
  // The length of the lease's next turn while somebody else waits. Requires a known lease.
  Nanoseconds turn_ns(std::uint64_t lease) const;
  // When the first such lease becomes eligible; never where none waits.
  Nanoseconds rival_ready_ns(Nanoseconds now);
  // Guaranteed time not yet received; negative: overdrawn.
  Nanoseconds credit_ns(std::uint64_t lease) const;

 private:
  struct Account {
    TurnTerms terms;
    std::int64_t credit = 0;        // thousandths of a nanosecond
    std::int64_t allowance = 0;     // the same, under its cap
    std::int64_t virtual_time = 0;  // surplus nanoseconds * virtual_scale / weight
    bool waiting = false;
    bool served = false;          // used its last turn
    Nanoseconds progress_ns = 0;  // device time since it last idled long: what it is at
    Nanoseconds idle_since_ns = 0;
    Nanoseconds think_ns = 0;  // mean time from falling idle to asking again
  };

  void accrue(Nanoseconds now);
  bool others_wait(std::uint64_t lease) const;
  Nanoseconds owed_back_ns(Nanoseconds now) const;
  void note_contention(Nanoseconds now);
  std::int64_t waiting_beside(std::uint64_t lease) const;
  static bool goes_before(const Account& a, const Account& b, bool owed);
  static Nanoseconds patience_of(const Account& account);
  static bool is_capped(const Account& account) { return account.terms.cap_milli < 1000; }
  static Nanoseconds eligible_ns(const Account& account, Nanoseconds now);

  QuantumTerms quantum_;
  std::map<std::uint64_t, Account> accounts_;
  std::optional<std::uint64_t> holder_;
  bool surplus_turn_ = false;
  Nanoseconds granted_ns_ = 0;
  Nanoseconds contended_ns_ = never_ns;  // since when somebody else waits during this turn
  Nanoseconds now_ = 0;
  std::int64_t virtual_clock_ = 0;
  bool started_ = false;
};

}  // namespace loam::schedule
