// One-shot breakpoints at the entries of functions, in code that a family of forked processes shares.
//
// The pages of code are replaced by a shared copy in which each entry's first byte is INT3. Whoever enters a function first takes a SIGTRAP: the
// handler writes down the function's number, puts the byte back for all processes, and goes on there. All later entries cost nothing.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if !defined(__x86_64__) || !defined(__linux__)
#error "breakpoints are written for Linux on x86-64"
#endif

enum { INT3 = 0xCC, PAGE = 4096, REGIONS = 8, NO_REGION = -1, REFUSED = -2 };

// Shared by all processes of the family, laid out by coverage/breakpoints.py.
struct shared {
    uint64_t logged;
    uint64_t log[];  // owner << 32 | number + 1, in order of first entry; 0: not written yet
};

struct region {
    uint8_t *start;
    size_t length;
    const uint32_t *offsets;  // of entries from `start`, ascending
    const uint8_t *original;
    size_t count;
    uint32_t first;  // number of the first entry
};

static struct region regions[REGIONS];
static int region_count;
static struct shared *shared;
static uint8_t *entered;
static uint64_t capacity;
static volatile uint32_t owner;
static volatile pid_t writing;  // the process of which a thread has a page open for writing, 0 for none
static struct sigaction before;

static ptrdiff_t position(const struct region *r, uint32_t offset) {
    size_t low = 0, high = r->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->offsets[middle] < offset) low = middle + 1;
        else high = middle;
    }
    return low < r->count && r->offsets[low] == offset ? (ptrdiff_t)low : -1;
}

// Write one byte of code. The page is shared, so that all processes see it. One thread at a time: another's closing would take the page away from us.
// A lock that was held while the process was forked belongs to a process that is not this one.
static int write_code(uint8_t *at, uint8_t byte) {
    uint8_t *page = (uint8_t *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1));
    pid_t self = getpid();
    for (;;) {
        pid_t holder = 0;
        if (__atomic_compare_exchange_n(&writing, &holder, self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) break;
        if (holder != self && __atomic_compare_exchange_n(&writing, &holder, self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) break;
        __builtin_ia32_pause();
    }
    int failed = mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    if (!failed) {
        __atomic_store_n(at, byte, __ATOMIC_SEQ_CST);
        mprotect(page, PAGE, PROT_READ | PROT_EXEC);
    }
    __atomic_store_n(&writing, 0, __ATOMIC_RELEASE);
    return failed;
}

static void note(uint32_t number) {
    if (__atomic_exchange_n(&entered[number], 1, __ATOMIC_RELAXED)) return;
    uint64_t slot = __atomic_fetch_add(&shared->logged, 1, __ATOMIC_RELAXED);
    if (slot < capacity) __atomic_store_n(&shared->log[slot], (uint64_t)owner << 32 | (number + 1), __ATOMIC_RELEASE);
}

// A trap that is none of ours: what would have happened without us.
static void pass_on(int signal, siginfo_t *info, void *context) {
    if (before.sa_flags & SA_SIGINFO) {
        if (before.sa_sigaction) before.sa_sigaction(signal, info, context);
        return;
    }
    if (before.sa_handler == SIG_IGN && info->si_code <= 0) return;
    if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(signal);
        return;
    }
    struct sigaction plain;
    memset(&plain, 0, sizeof plain);
    plain.sa_handler = SIG_DFL;
    sigaction(SIGTRAP, &plain, NULL);
    raise(SIGTRAP);
}

static void trapped(int signal, siginfo_t *info, void *raw) {
    ucontext_t *context = raw;
    int error = errno;
    uint8_t *at = (uint8_t *)context->uc_mcontext.gregs[REG_RIP] - 1;
    for (int i = 0; i < region_count && info->si_code > 0; i++) {
        struct region *r = &regions[i];
        if (at < r->start || at >= r->start + r->length) continue;
        ptrdiff_t k = position(r, (uint32_t)(at - r->start));
        if (k < 0 || r->original[k] == INT3) break;
        note(r->first + (uint32_t)k);
        if (write_code(at, r->original[k])) break;
        context->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)at;
        errno = error;
        return;
    }
    pass_on(signal, info, raw);
    errno = error;
}

// Where the family writes down what it enters: `memory` holds struct shared with room for `room` numbers, `flags` one byte for each.
void tk_share(void *memory, uint8_t *flags, uint64_t room) {
    shared = memory;
    entered = flags;
    capacity = room;
}

// Copy `length` bytes of code at `start` (both whole pages) into `copy`, with INT3 at each of the `count` `offsets` whose byte is the expected one.
// `original`: the bytes that the file has there; where memory differs, or has INT3 already, it is set to INT3, which marks an entry left alone.
// Returns how many are armed.
int64_t tk_copy(const uint8_t *start, uint64_t length, uint8_t *copy, const uint32_t *offsets, uint8_t *original, uint64_t count) {
    int64_t armed = 0;
    memcpy(copy, start, length);
    for (uint64_t k = 0; k < count; k++) {
        if (copy[offsets[k]] != original[k] || original[k] == INT3) {
            original[k] = INT3;
            continue;
        }
        copy[offsets[k]] = INT3;
        armed++;
    }
    return armed;
}

// Tell of a region; its arrays must stay. `tk_map` puts the shared copy in its place.
int tk_region(uint8_t *start, uint64_t length, const uint32_t *offsets, const uint8_t *original, uint64_t count, uint32_t first) {
    if (region_count == REGIONS) return NO_REGION;
    regions[region_count] = (struct region){start, length, offsets, original, count, first};
    return region_count++;
}

// From here on this process, and those that it forks, run the copy in `file`.
int tk_map(int number, int file) {
    struct region *r = &regions[number];
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = trapped;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigfillset(&action.sa_mask);
    struct sigaction old;
    if (sigaction(SIGTRAP, &action, &old)) return REFUSED;
    if (!(old.sa_flags & SA_SIGINFO) || old.sa_sigaction != trapped) before = old;
    void *got = mmap(r->start, r->length, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, file, 0);
    return got == r->start ? 0 : REFUSED;
}

// Whom first entries are written down for from now on, in this process.
void tk_owner(uint32_t number) { owner = number; }
