/* The slice page: what a lease may use on a node's devices, and what it has used. Two files that
 * are mapped by the daemon and the keeper (outside) and by the guard (inside every process of the
 * task). This is the one header that the guard shares with the rest; it is C, so that the layout
 * means the same to any compiler. Specification: docs/formats/slice_page.md.
 *
 * Besides the layout it holds the few operations that every party must do in exactly the same way:
 * the memory book, which stays true when any process is killed between any two instructions. */
#ifndef LOAM_GUARD_SLICE_PAGE_H
#define LOAM_GUARD_SLICE_PAGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define LOAM_STATIC_ASSERT(condition, text) static_assert(condition, text)
extern "C" {
#else
#define LOAM_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

#define LOAM_SLICE_VERSION 2u
#define LOAM_SLICE_LIMITS_MAGIC 0x31544d494c4d4f4cull   /* "LOMLIMT1" in memory order */
#define LOAM_SLICE_COUNTERS_MAGIC 0x31544e434c4d4f4cull /* "LOMLCNT1" */

#define LOAM_SLICE_DEVICES_MAX 16u
#define LOAM_SLICE_SLOTS_MAX 256u
#define LOAM_SLICE_LEASE_CHARS 48u /* with the closing zero */
#define LOAM_SLICE_NAME_CHARS 96u  /* with the closing zero */

/* Where a process of the task finds its page: first the well-known path (the sandbox binds it, so
 * that even a child with an empty environment is bound), then this variable's value as the prefix
 * of the two suffixes. */
#define LOAM_SLICE_PATH "/run/loam/slice"
#define LOAM_SLICE_VARIABLE "LOAM_SLICE_PAGE"
#define LOAM_SLICE_LIMITS_SUFFIX ".limits"
#define LOAM_SLICE_COUNTERS_SUFFIX ".counters"

#define LOAM_SLICE_NO_LIMIT UINT64_MAX
#define LOAM_SLICE_NO_DEADLINE UINT64_MAX

enum { LOAM_SLICE_STRICT = 0, LOAM_SLICE_BURSTABLE = 1 };
enum { LOAM_TURNS_FIXED = 0, LOAM_TURNS_DYNAMIC = 1 };

/* The two low bits of loam_turn.state; the other bits count grants. */
enum { LOAM_TURN_NONE = 0, LOAM_TURN_GRANTED = 1, LOAM_TURN_REVOKED = 2, LOAM_TURN_MASK = 3 };

/* A device's engines. Kernels, and copies within the device, take the first lane's turns; copies
 * between host and device take those of their direction where the device has copy engines of its
 * own (loam_device_limits.lanes), else the first lane's. */
enum { LOAM_LANE_COMPUTE = 0, LOAM_LANE_TO_DEVICE = 1, LOAM_LANE_FROM_DEVICE = 2, LOAM_LANES = 3 };

/* What device memory is held as. */
enum {
  LOAM_MEMORY_BUFFER = 0,   /* plain, pitched and asynchronous allocations */
  LOAM_MEMORY_IMAGE = 1,    /* images, arrays, mipmaps */
  LOAM_MEMORY_SHARED = 2,   /* shared virtual memory, managed memory */
  LOAM_MEMORY_HOST = 3,     /* host memory given to the device */
  LOAM_MEMORY_POOL = 4,     /* what pools hold beyond what they handed out; pipes */
  LOAM_MEMORY_VIRTUAL = 5,  /* physical handles of virtual memory, imports */
  LOAM_MEMORY_IMPLICIT = 6, /* contexts, modules, graphs: what a driver takes for itself */
  LOAM_MEMORY_OTHER = 7,
  LOAM_MEMORY_KINDS = 8
};

/* loam_device_limits.flags */
#define LOAM_LIMIT_CLEAR 1u          /* memory is cleared before the task sees it */
#define LOAM_LIMIT_CONCURRENT 2u     /* leases may have work in flight at the same time */
#define LOAM_LIMIT_END_HUNG 4u       /* a lease whose work does not end is to be ended */
#define LOAM_LIMIT_LENDS 8u          /* memory that it does not use may be lent to others */
#define LOAM_LIMIT_BORROWS 16u       /* it may use others' memory, and gives it back when called */
#define LOAM_LIMIT_SPILLS 32u        /* its memory may go to the host while it has no turn */
#define LOAM_LIMIT_PARK_IDLE 64u     /* while it idles for long, its memory that may spill does */
#define LOAM_LIMIT_END_IDLE 128u     /* a lease that idles for long is to be ended */
#define LOAM_LIMIT_LEAVES_FIRST 256u /* its memory goes to the host before others' does */

/* ---- limits: written by daemon and keeper only, mapped read-only by the guest ------------- */

typedef struct loam_device_limits {
  uint64_t device_key;   /* loam_device_key of the device */
  uint64_t memory_bytes; /* LOAM_SLICE_NO_LIMIT: all of it */
  uint32_t share_milli;  /* 0..1000 of the device's time; 0: only what idles */
  uint32_t cap_milli;    /* 1..1000 of the device's time, never more; strict: at most the share */
  uint32_t weight;       /* >= 1; decides between burstable leases over idle time */
  uint32_t mode;         /* LOAM_SLICE_STRICT or LOAM_SLICE_BURSTABLE */
  uint64_t quantum_ns;   /* length of one turn */
  uint64_t linger_ns;    /* idle time after which a wanted turn is taken back */
  uint32_t turns;        /* LOAM_TURNS_FIXED or LOAM_TURNS_DYNAMIC */
  uint32_t service;      /* 1: goes before leases that are none */
  uint32_t copy_share_milli; /* 0..1000 of the copy time, in each direction */
  uint32_t lanes;            /* 1: one engine for all; 3: copies have lanes of their own */
  uint64_t hung_ns; /* work in flight this long after its turn's end is reported; 0: never */
  uint32_t flags;   /* LOAM_LIMIT_... */
  uint32_t apart;
  /* The keeper's, while the lease runs: part of the quota that others use, and what this lease uses
   * of others'. What it may hold is memory_bytes - lent_bytes + borrowed_bytes. */
  uint64_t lent_bytes;
  uint64_t borrowed_bytes;
  char name[LOAM_SLICE_NAME_CHARS]; /* for people */
  uint8_t reserved[64];
} loam_device_limits;
LOAM_STATIC_ASSERT(sizeof(loam_device_limits) == 256, "layout");
LOAM_STATIC_ASSERT(offsetof(loam_device_limits, share_milli) == 16, "layout");
LOAM_STATIC_ASSERT(offsetof(loam_device_limits, quantum_ns) == 32, "layout");
LOAM_STATIC_ASSERT(offsetof(loam_device_limits, turns) == 48, "layout");
LOAM_STATIC_ASSERT(offsetof(loam_device_limits, hung_ns) == 64, "layout");
LOAM_STATIC_ASSERT(offsetof(loam_device_limits, lent_bytes) == 80, "layout");
LOAM_STATIC_ASSERT(offsetof(loam_device_limits, name) == 96, "layout");

typedef struct loam_slice_limits {
  uint64_t magic;
  uint32_t version;
  uint32_t bytes; /* of the whole file */
  uint32_t device_count;
  uint32_t flags; /* 0 in version 2 */
  char lease[LOAM_SLICE_LEASE_CHARS];
  uint8_t reserved[56];
  loam_device_limits device[LOAM_SLICE_DEVICES_MAX];
  uint8_t padding[3968];
} loam_slice_limits;
LOAM_STATIC_ASSERT(offsetof(loam_slice_limits, device_count) == 16, "layout");
LOAM_STATIC_ASSERT(offsetof(loam_slice_limits, lease) == 24, "layout");
LOAM_STATIC_ASSERT(offsetof(loam_slice_limits, device) == 128, "layout");
LOAM_STATIC_ASSERT(sizeof(loam_slice_limits) == 8192, "layout");

/* ---- counters: written by guests and keeper ----------------------------------------------- */

/* `used` and `tag` change together, in one 16-byte compare-and-swap. The tag names the slot and
 * the sequence number of the change that made `used` what it is. */
typedef struct loam_memory_book {
  uint64_t used; /* bytes */
  uint64_t tag;
  uint64_t peak;     /* bytes */
  uint64_t refusals; /* allocations refused for the quota */
  /* An owner whose memory is lent writes what it needs and waits here; the keeper answers. */
  uint64_t wanted_bytes;
  uint32_t answers; /* a futex: counted up by the keeper when a quota changed or memory left */
  uint32_t reserved;
  /* A lease that may spill writes what the device itself could not give it within its quota, and
   * waits here too; the keeper sends others' memory to the host. */
  uint64_t short_bytes;
  uint8_t apart[8];
} loam_memory_book;
LOAM_STATIC_ASSERT(sizeof(loam_memory_book) == 64, "layout");

/* One lane's turn and what was used of it. */
typedef struct loam_turn {
  uint32_t state; /* a futex: guests wait on it, only the keeper writes it */
  uint32_t reserved;
  uint64_t deadline_ns; /* CLOCK_MONOTONIC; after it nothing new goes to the device */
  uint64_t granted_ns;  /* CLOCK_MONOTONIC */
  uint64_t turns;       /* granted so far */
  uint8_t apart[32];
} loam_turn;
LOAM_STATIC_ASSERT(sizeof(loam_turn) == 64, "layout");

typedef struct loam_usage {
  uint64_t busy_ns;          /* time in which any process of the lease had work in flight */
  uint64_t counted_until_ns; /* CLOCK_MONOTONIC: up to here busy_ns is complete */
  uint64_t commands;         /* first lane: kernels; the others: copies of their direction */
  uint64_t transfers;        /* first lane: copies and fills within the device, maps */
  uint64_t bytes_copied;     /* by copies */
  uint64_t waiting_ns;       /* time that threads waited for a turn */
  uint64_t hung;             /* times that work did not end with its turn; the keeper's */
  uint64_t reserved;
} loam_usage;
LOAM_STATIC_ASSERT(sizeof(loam_usage) == 64, "layout");

typedef struct loam_device_counters {
  loam_memory_book memory;
  loam_turn turn[LOAM_LANES];
  loam_usage usage[LOAM_LANES];
  uint32_t leave; /* a futex: counted up by the keeper when memory is to go to the host */
  uint8_t reserved[60];
} loam_device_counters;
LOAM_STATIC_ASSERT(sizeof(loam_device_counters) == 512, "layout");
LOAM_STATIC_ASSERT(offsetof(loam_device_counters, turn) == 64, "layout");
LOAM_STATIC_ASSERT(offsetof(loam_device_counters, usage) == 256, "layout");
LOAM_STATIC_ASSERT(offsetof(loam_device_counters, leave) == 448, "layout");

/* One lane's side of a process. */
typedef struct loam_slot_lane {
  uint32_t in_flight;     /* commands given to the driver and not finished */
  uint32_t wanting;       /* threads that wait for a turn */
  uint64_t idle_since_ns; /* CLOCK_MONOTONIC, when in_flight last fell to 0 */
  uint64_t busy_since_ns; /* CLOCK_MONOTONIC, when in_flight last rose from 0 */
} loam_slot_lane;

/* What one process did on one device. `seq`, `committed` and `intent` are the memory book's side of
 * the process; the lanes belong to turns. */
typedef struct loam_slot_device {
  uint64_t seq;       /* the last change begun */
  uint64_t committed; /* the last change known to have reached the book */
  struct {
    uint64_t before, after;               /* bytes held without and with the change `seq` */
  } intent[2];                            /* by the parity of seq */
  uint64_t kind_bytes[LOAM_MEMORY_KINDS]; /* of what is held; by and for the process */
  loam_slot_lane lane[LOAM_LANES];
  uint64_t spilled_bytes; /* of what is held: in the host's memory now */
  uint32_t left;          /* the `leave` that was last obeyed or found to ask for nothing */
  uint8_t reserved[60];
} loam_slot_device;
LOAM_STATIC_ASSERT(offsetof(loam_slot_device, kind_bytes) == 48, "layout");
LOAM_STATIC_ASSERT(offsetof(loam_slot_device, lane) == 112, "layout");
LOAM_STATIC_ASSERT(offsetof(loam_slot_device, spilled_bytes) == 184, "layout");
LOAM_STATIC_ASSERT(offsetof(loam_slot_device, left) == 192, "layout");
LOAM_STATIC_ASSERT(sizeof(loam_slot_device) == 256, "layout");

/* A slot is one process. It is taken as long as byte `index` of the counters file is locked (an
 * open-file-description lock, which the kernel drops at the process's death, whatever its pid
 * namespace); nothing else says so. */
typedef struct loam_slot {
  uint64_t claims;        /* how often it was taken */
  uint64_t pid;           /* as the process sees itself; for people */
  uint64_t started_ticks; /* its start time as /proc/self/stat gives it; for people */
  uint8_t reserved[40];
  loam_slot_device device[LOAM_SLICE_DEVICES_MAX];
} loam_slot;
LOAM_STATIC_ASSERT(sizeof(loam_slot) == 4160, "layout");

typedef struct loam_slice_counters {
  uint64_t magic;
  uint32_t version;
  uint32_t bytes;
  uint32_t device_count;
  uint32_t slot_count;
  char lease[LOAM_SLICE_LEASE_CHARS];
  uint8_t apart[56];
  uint32_t doorbell;   /* a futex: the keeper waits on it, guests count it up and wake */
  uint32_t slots_used; /* slots above were never taken */
  uint8_t padding[3960];
  loam_device_counters device[LOAM_SLICE_DEVICES_MAX];
  loam_slot slot[LOAM_SLICE_SLOTS_MAX];
} loam_slice_counters;
LOAM_STATIC_ASSERT(offsetof(loam_slice_counters, doorbell) == 128, "layout");
LOAM_STATIC_ASSERT(offsetof(loam_slice_counters, device) == 4096, "layout");
LOAM_STATIC_ASSERT(offsetof(loam_slice_counters, slot) == 12288, "layout");
LOAM_STATIC_ASSERT(sizeof(loam_slice_counters) == 1077248, "layout");

/* ---- operations ----------------------------------------------------------------------------- */

/* FNV-1a, 64 bits, of the device's identity text. Either "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
 * from CL_DEVICE_UUID_KHR, in lower case, or "opencl:PLATFORM/NAME/INDEX" with the names as OpenCL
 * gives them, without blanks around them, and the index in CL_DEVICE_TYPE_ALL's order, from 0. */
static inline uint64_t loam_device_key(const char* identity) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (; *identity; ++identity) {
    hash ^= (unsigned char)*identity;
    hash *= 0x100000001b3ull;
  }
  return hash;
}

/* Compares the two words at `pair` (16-byte aligned) with `low`, `high` and replaces both at once.
 * A full barrier. Returns 1 on success. */
static inline int loam_compare_and_swap_pair(uint64_t* pair, uint64_t low, uint64_t high,
                                             uint64_t new_low, uint64_t new_high) {
#if defined(__x86_64__)
  unsigned char done;
  __asm__ __volatile__("lock cmpxchg16b %1\n\tsete %0"
                       : "=q"(done), "+m"(*(uint64_t(*)[2])(void*)pair), "+a"(low), "+d"(high)
                       : "b"(new_low), "c"(new_high)
                       : "memory", "cc");
  return done;
#elif defined(__aarch64__)
  uint64_t seen_low, seen_high;
  uint32_t failed;
  do {
    __asm__ __volatile__("ldaxp %0, %1, [%2]"
                         : "=&r"(seen_low), "=&r"(seen_high)
                         : "r"(pair)
                         : "memory");
    if (seen_low != low || seen_high != high) {
      __asm__ __volatile__("stlxp %w0, %1, %2, [%3]"
                           : "=&r"(failed)
                           : "r"(seen_low), "r"(seen_high), "r"(pair)
                           : "memory");
      if (!failed) return 0;
      continue;
    }
    __asm__ __volatile__("stlxp %w0, %1, %2, [%3]"
                         : "=&r"(failed)
                         : "r"(new_low), "r"(new_high), "r"(pair)
                         : "memory");
  } while (failed);
  return 1;
#else
#error "the slice page needs a 16-byte compare-and-swap for this processor"
#endif
}

static inline void loam_raise(uint64_t* word, uint64_t value) {
  uint64_t seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);
  while (seen < value &&
         !__atomic_compare_exchange_n(word, &seen, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
}

#define LOAM_TAG_SEQ_BITS 48u
#define LOAM_TAG_SEQ_MASK ((1ull << LOAM_TAG_SEQ_BITS) - 1)

static inline uint64_t loam_tag(uint32_t slot, uint64_t seq) {
  return ((uint64_t)(slot + 1u) << LOAM_TAG_SEQ_BITS) | (seq & LOAM_TAG_SEQ_MASK);
}

/* Whether the device's limits hold this of LOAM_LIMIT_... */
static inline int loam_limits_have(const loam_device_limits* limits, uint32_t flag) {
  return (__atomic_load_n(&limits->flags, __ATOMIC_ACQUIRE) & flag) != 0;
}

/* What the lease may hold on the device now. */
static inline uint64_t loam_quota_bytes(const loam_device_limits* limits) {
  const uint64_t own = __atomic_load_n(&limits->memory_bytes, __ATOMIC_ACQUIRE);
  const uint64_t lent = __atomic_load_n(&limits->lent_bytes, __ATOMIC_ACQUIRE);
  const uint64_t borrowed = __atomic_load_n(&limits->borrowed_bytes, __ATOMIC_ACQUIRE);
  if (own == LOAM_SLICE_NO_LIMIT) return own;
  return (own > lent ? own - lent : 0) + borrowed;
}

/* The lane whose turns a copy of that direction takes. */
static inline uint32_t loam_lane_of(const loam_device_limits* limits, uint32_t lane) {
  return __atomic_load_n(&limits->lanes, __ATOMIC_RELAXED) == LOAM_LANES && lane < LOAM_LANES
             ? lane
             : (uint32_t)LOAM_LANE_COMPUTE;
}

/* Notes in its slot that the change `tag` names has reached the book. Whoever is about to replace a
 * tag does this first, so a change is either named by the tag or noted. */
static inline void loam_book_note(loam_slice_counters* page, uint32_t device, uint64_t tag) {
  const uint64_t slot = tag >> LOAM_TAG_SEQ_BITS;
  if (slot == 0 || slot > LOAM_SLICE_SLOTS_MAX) return;
  loam_raise(&page->slot[slot - 1].device[device].committed, tag & LOAM_TAG_SEQ_MASK);
}

/* Bytes that the process of `slot` holds on `device`. The caller owns the slot (holds its lock). */
static inline uint64_t loam_book_held(loam_slice_counters* page, uint32_t device, uint32_t slot) {
  loam_slot_device* own = &page->slot[slot].device[device];
  /* The tag before `committed`: a change that the tag no longer names was noted earlier. */
  loam_book_note(page, device, __atomic_load_n(&page->device[device].memory.tag, __ATOMIC_SEQ_CST));
  const uint64_t seq = __atomic_load_n(&own->seq, __ATOMIC_SEQ_CST);
  if (seq == 0) return 0;
  return __atomic_load_n(&own->committed, __ATOMIC_SEQ_CST) >= seq ? own->intent[seq & 1].after
                                                                   : own->intent[seq & 1].before;
}

/* Changes what `slot` holds to `after` if the lease's total then stays within `limit_bytes` (a
 * fall always succeeds). One thread at a time per slot, which owns the slot. Returns 1, or 0 when
 * the limit forbids it. Wait-free but for other processes' successes. Cost: one locked instruction
 * where nobody else changes the book. `before` is what loam_book_held() just said.
 *
 * The stores before the swap need no barrier of their own: the swap is one, and nobody looks at an
 * intent before the swap but its owner, or, after the owner's death, whoever holds its lock. */
static inline int loam_book_change_from(loam_slice_counters* page, uint32_t device, uint32_t slot,
                                        uint64_t before, uint64_t after, uint64_t limit_bytes) {
  loam_memory_book* book = &page->device[device].memory;
  loam_slot_device* own = &page->slot[slot].device[device];
  const uint64_t seq = __atomic_load_n(&own->seq, __ATOMIC_RELAXED) + 1;
  __atomic_store_n(&own->intent[seq & 1].before, before, __ATOMIC_RELEASE);
  __atomic_store_n(&own->intent[seq & 1].after, after, __ATOMIC_RELEASE);
  __atomic_store_n(&own->seq, seq, __ATOMIC_RELEASE);
  for (;;) {
    const uint64_t tag = __atomic_load_n(&book->tag, __ATOMIC_SEQ_CST);
    const uint64_t used = __atomic_load_n(&book->used, __ATOMIC_SEQ_CST);
    uint64_t total;
    loam_book_note(page, device, tag);
    if (after >= before) {
      const uint64_t more = after - before;
      if (more > limit_bytes || used > limit_bytes - more) return 0;
      total = used + more;
    } else {
      total = used > before - after ? used - (before - after) : 0;
    }
    if (loam_compare_and_swap_pair(&book->used, used, tag, total, loam_tag(slot, seq))) {
      /* Others may note this very change too, never a later one: a plain store loses nothing. */
      __atomic_store_n(&own->committed, seq, __ATOMIC_RELEASE);
      loam_raise(&book->peak, total);
      return 1;
    }
  }
}

static inline int loam_book_change(loam_slice_counters* page, uint32_t device, uint32_t slot,
                                   uint64_t after, uint64_t limit_bytes) {
  const uint64_t before = loam_book_held(page, device, slot);
  return loam_book_change_from(page, device, slot, before, after, limit_bytes);
}

/* Gives back all that a dead process left in `slot`. The caller holds the slot's lock, so it acts
 * as the slot's owner; if it is killed on the way, the next one completes the work. Returns 1 if
 * there was anything. */
static inline int loam_slot_reclaim(loam_slice_counters* page, uint32_t slot) {
  int found = 0;
  for (uint32_t device = 0; device < LOAM_SLICE_DEVICES_MAX; ++device) {
    loam_slot_device* own = &page->slot[slot].device[device];
    for (uint32_t lane = 0; lane < LOAM_LANES; ++lane) {
      if (__atomic_exchange_n(&own->lane[lane].in_flight, 0u, __ATOMIC_SEQ_CST) != 0) found = 1;
      if (__atomic_exchange_n(&own->lane[lane].wanting, 0u, __ATOMIC_SEQ_CST) != 0) found = 1;
    }
    __atomic_store_n(&own->spilled_bytes, (uint64_t)0, __ATOMIC_SEQ_CST);
    for (uint32_t kind = 0; kind < LOAM_MEMORY_KINDS; ++kind)
      __atomic_store_n(&own->kind_bytes[kind], (uint64_t)0, __ATOMIC_SEQ_CST);
    if (loam_book_held(page, device, slot) == 0) continue;
    loam_book_change(page, device, slot, 0, LOAM_SLICE_NO_LIMIT);
    found = 1;
  }
  return found;
}

#ifdef __cplusplus
}
#endif

#endif /* LOAM_GUARD_SLICE_PAGE_H */
