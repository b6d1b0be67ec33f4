#include "guard/memory.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "guard/lock.hpp"
#include "guard/spin_lock.hpp"

namespace loam::guard {

namespace {

// One thread of the process at a time changes its slot. (The lease's other processes do not wait:
// they meet only in the page's compare-and-swap.)
SpinLock change_lock;

// Addresses known, in a table that doubles when full: the cost of one does not grow with their
// number.
struct Entry {
  Entry* next;
  void* address;
  Holding holding;
};
pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
Entry** table = nullptr;
std::size_t buckets = 0;
std::size_t entries_known = 0;
constexpr std::size_t first_buckets = 1024;

// A forked child holds nothing: what its parent allocated is the parent's.
void forget_in_child() {
  const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  change_lock.forget();
  std::memcpy(&table_lock, &fresh, sizeof fresh);
  table = nullptr;
  buckets = 0;
  entries_known = 0;
}

[[gnu::constructor]] void forget_after_fork() {
  at_fork_in_child(&forget_in_child);
}

std::size_t bucket_of(const void* address, std::size_t count) {
  // Fibonacci hashing spreads addresses, whose low bits are alike.
  const std::uint64_t hash = reinterpret_cast<std::uintptr_t>(address) * 0x9e3779b97f4a7c15ull;
  return static_cast<std::size_t>(hash >> 32) & (count - 1);
}

// Under the table's lock. Keeps the old table where memory is short.
bool make_room() {
  if (table && entries_known < buckets) return true;
  const std::size_t wider = table ? buckets * 2 : first_buckets;
  auto** const fresh = static_cast<Entry**>(std::calloc(wider, sizeof(Entry*)));
  if (!fresh) return table != nullptr;
  for (std::size_t i = 0; i < buckets; ++i)
    for (Entry* entry = table[i]; entry;) {
      Entry* const next = entry->next;
      Entry*& head = fresh[bucket_of(entry->address, wider)];
      entry->next = head;
      head = entry;
      entry = next;
    }
  std::free(static_cast<void*>(table));
  table = fresh;
  buckets = wider;
  return true;
}

void count_kind(Page& page, std::uint32_t entry, std::uint32_t kind, std::int64_t bytes) {
  std::uint64_t& word = page.own(entry).kind_bytes[kind < LOAM_MEMORY_KINDS ? kind : 7];
  const std::uint64_t now = __atomic_load_n(&word, __ATOMIC_RELAXED);
  __atomic_store_n(&word, now + static_cast<std::uint64_t>(bytes), __ATOMIC_RELAXED);
}

bool take_now(Page& page, std::uint32_t entry, std::uint64_t bytes, std::uint32_t kind) {
  const std::uint64_t limit = loam_quota_bytes(&page.limits().device[entry]);
  const Spinning locked(change_lock);
  const std::uint64_t held = loam_book_held(&page.counters(), entry, page.slot());
  if (bytes > UINT64_MAX - held ||
      !loam_book_change_from(&page.counters(), entry, page.slot(), held, held + bytes, limit))
    return false;
  count_kind(page, entry, kind, static_cast<std::int64_t>(bytes));
  return true;
}

// How long it is worth to wait for memory that others have: for one's own, that is lent, until the
// borrower must have given it back; for others', only for the keeper's answer.
std::uint64_t patience_ns(const Page& page, std::uint32_t entry, std::uint64_t bytes) {
  const loam_device_limits& limits = page.limits().device[entry];
  const std::uint64_t lent = __atomic_load_n(&limits.lent_bytes, __ATOMIC_ACQUIRE);
  const std::uint64_t own = __atomic_load_n(&limits.memory_bytes, __ATOMIC_ACQUIRE);
  const std::uint64_t used =
      __atomic_load_n(&page.counters().device[entry].memory.used, __ATOMIC_SEQ_CST);
  if (lent > 0 && bytes <= own && used <= own - bytes) return reclaim_wait_ns;
  const bool borrows = loam_limits_have(&limits, LOAM_LIMIT_BORROWS);
  return borrows && bytes <= UINT64_MAX - used ? borrow_wait_ns : 0;
}

// Tells the keeper what is needed and waits for its answers.
bool take_from_others(Page& page, std::uint32_t entry, std::uint64_t bytes, std::uint32_t kind) {
  loam_memory_book& book = page.counters().device[entry].memory;
  const std::uint64_t began = now_ns();
  bool asked = false;
  for (;;) {
    const std::uint32_t answers = __atomic_load_n(&book.answers, __ATOMIC_SEQ_CST);
    if (take_now(page, entry, bytes, kind)) return true;
    const std::uint64_t patience = patience_ns(page, entry, bytes);
    const std::uint64_t waited = now_ns() - began;
    // A borrower's wish that the keeper has taken off cannot be met.
    const bool answered = asked && __atomic_load_n(&book.wanted_bytes, __ATOMIC_SEQ_CST) == 0;
    if (waited >= patience || (answered && patience == borrow_wait_ns)) return false;
    loam_raise(&book.wanted_bytes, __atomic_load_n(&book.used, __ATOMIC_SEQ_CST) + bytes);
    asked = true;
    page.ring();
    constexpr std::uint64_t ask_again_ns = 100'000'000;
    const std::uint64_t most = patience - waited < ask_again_ns ? patience - waited : ask_again_ns;
    const timespec time{0, static_cast<long>(most)};
    ::syscall(SYS_futex, &book.answers, FUTEX_WAIT, answers, &time, nullptr, 0);
  }
}

}  // namespace

bool take(Page& page, std::uint32_t entry, std::uint64_t bytes, std::uint32_t kind) {
  if (take_now(page, entry, bytes, kind)) [[likely]]
    return true;
  // Perhaps a killed process still stands in the book.
  page.reclaim_dead();
  if (take_now(page, entry, bytes, kind)) return true;
  if (patience_ns(page, entry, bytes) > 0 && take_from_others(page, entry, bytes, kind))
    return true;
  __atomic_add_fetch(&page.counters().device[entry].memory.refusals, 1u, __ATOMIC_SEQ_CST);
  return false;
}

void take_off(Page& page, std::uint32_t entry, std::uint64_t bytes, std::uint32_t kind) {
  const Spinning locked(change_lock);
  const std::uint64_t held = loam_book_held(&page.counters(), entry, page.slot());
  const std::uint64_t fall = bytes < held ? bytes : held;
  loam_book_change_from(&page.counters(), entry, page.slot(), held, held - fall,
                        LOAM_SLICE_NO_LIMIT);
  count_kind(page, entry, kind, -static_cast<std::int64_t>(fall));
}

bool take_all(Page& page, std::uint32_t entries, Holding* holding) {
  holding->entries = 0;
  for (std::uint32_t entry = 0; entry < page.device_count(); ++entry) {
    if (!(entries >> entry & 1u)) continue;
    if (!take(page, entry, holding->bytes, holding->kind)) {
      give_back(page, *holding);
      return false;
    }
    holding->entries |= 1u << entry;
  }
  return true;
}

bool grow(Page& page, Holding* holding, std::uint64_t bytes) {
  if (bytes <= holding->bytes) return true;
  Holding more = *holding;
  more.bytes = bytes - holding->bytes;
  if (!take_all(page, holding->entries, &more)) return false;
  holding->bytes = bytes;
  return true;
}

void give_back(Page& page, const Holding& holding) {
  for (std::uint32_t entry = 0; entry < page.device_count(); ++entry)
    if (holding.entries >> entry & 1u) take_off(page, entry, holding.bytes, holding.kind);
}

bool remember(void* address, const Holding& holding) {
  Entry* const entry = static_cast<Entry*>(std::malloc(sizeof(Entry)));
  if (!entry) return false;
  const Locked locked(table_lock);
  if (!make_room()) {
    std::free(entry);
    return false;
  }
  Entry*& head = table[bucket_of(address, buckets)];
  *entry = Entry{head, address, holding};
  head = entry;
  ++entries_known;
  return true;
}

bool forget(void* address, Holding* holding) {
  const Locked locked(table_lock);
  if (!table) return false;
  for (Entry** link = &table[bucket_of(address, buckets)]; *link; link = &(*link)->next) {
    if ((*link)->address != address) continue;
    Entry* const entry = *link;
    *holding = entry->holding;
    *link = entry->next;
    std::free(entry);
    --entries_known;
    return true;
  }
  return false;
}

}  // namespace loam::guard
