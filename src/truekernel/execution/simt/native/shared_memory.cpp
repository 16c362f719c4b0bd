// Shared memory. The shim makes a __shared__ variable thread-local; the compiler then asks __tls_get_addr for its place, and our
// __tls_get_addr answers with the memory of the block that runs. So templates, namespaces and several resident blocks need no
// special care, and the memory lies away from everything else.
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "checker.h"
#include "module.h"

// Every `extern __shared__` array is this symbol (TK_DYNAMIC_LABEL).
extern "C" __attribute__((visibility("default"))) __thread char tk_dynamic_shared[16];
__thread char tk_dynamic_shared[16];

namespace {

struct TlsIndex {
  unsigned long module, offset;
};

constexpr uint64_t kGranule = 128;            // of an allocation of shared memory
constexpr size_t kSlab = size_t(8) << 20;     // address space of one resident block
constexpr size_t kSlabData = size_t(4) << 20; // its upper end lies here, followed by inaccessible memory

unsigned long active_tls, own_tls, own_offset;
char *static_base, *dynamic_base;
uint64_t static_size, dynamic_size;
char *slabs;
size_t opened[tk::kMaxResident];              // accessible bytes below a slab's upper end
void *(*next_tls_get_addr)(TlsIndex *);

int find_own_tls(dl_phdr_info *info, size_t, void *) {
  if (!info->dlpi_tls_data) return 0;
  const auto offset = reinterpret_cast<uintptr_t>(tk_dynamic_shared) - reinterpret_cast<uintptr_t>(info->dlpi_tls_data);
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_TLS && offset < info->dlpi_phdr[i].p_memsz) {
      own_tls = info->dlpi_tls_modid;
      own_offset = offset;
      return 1;
    }
  return 0;
}

uint64_t round_up(uint64_t n, uint64_t step) { return (n + step - 1) / step * step; }

}  // namespace

namespace tk {

void initialise_shared() {
  char *all = static_cast<char *>(mmap(nullptr, kSlab * kMaxResident + 2 * kFar, PROT_NONE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  slabs = all + kFar;
  next_tls_get_addr = reinterpret_cast<void *(*)(TlsIndex *)>(dlsym(RTLD_NEXT, "__tls_get_addr"));
  dl_iterate_phdr(find_own_tls, nullptr);
}

void enter_module(tk_module *m) {
  active_module = m;
  active_tls = m->tls_module;
}

void prepare_block_memory(Block *b, uint64_t static_bytes, uint64_t dynamic_bytes) {
  // Like a GPU, one allocation for both, whose end is not exact (an H200 faults from the next multiple of 128 bytes on); a checked library's bounds are.
  const uint64_t dynamic_offset = round_up(static_bytes, kGranule) + (checking ? 1024 : 0);
  const uint64_t total = round_up(dynamic_offset + dynamic_bytes, kGranule);
  if (total > kSlabData) fail(TK_INFRASTRUCTURE, {}, "static shared variables of one library exceed %zu bytes", kSlabData);
  char *end = slabs + b->slot * kSlab + kSlabData;
  const uint64_t needed = round_up(total, kPage);
  if (needed > opened[b->slot]) {
    mprotect(end - needed, needed, PROT_READ | PROT_WRITE);
    opened[b->slot] = needed;
  }
  b->shared = end - total;
  b->dynamic = b->shared + dynamic_offset;
  static_size = static_bytes;
  dynamic_size = dynamic_bytes;
  if (static_bytes + dynamic_bytes) memset(b->shared, 0xFF, total);
}

void enter_block_memory(Block *b) {
  static_base = b->shared;
  dynamic_base = b->dynamic;
  if (checking) check_enter_block(b);
}

uint64_t shared_bytes(const Block *b) { return uint64_t(b->dynamic - b->shared) + dynamic_size; }

SharedBounds shared_bounds() {
  return {reinterpret_cast<uint64_t>(static_base), static_size, reinterpret_cast<uint64_t>(dynamic_base), dynamic_size};
}

bool shared_contains(uint64_t address) { return address - reinterpret_cast<uint64_t>(slabs) < kSlab * kMaxResident; }

SharedPlace shared_place(uint64_t address) {
  SharedPlace place{};
  const auto low = reinterpret_cast<uint64_t>(static_base), dynamic = reinterpret_cast<uint64_t>(dynamic_base);
  if (dynamic_size && address + 512 >= dynamic) {
    place.name = "dynamic shared memory";
    place.offset = int64_t(address - dynamic);
    place.size = dynamic_size;
    return place;
  }
  size_t count;
  const SharedVariable *variables = module_shared(active_module, &count);
  for (size_t i = 0; i < count; ++i) {
    if (i && low + variables[i].offset > address) break;
    place.name = variables[i].name;
    place.offset = int64_t(address - low - variables[i].offset);
    place.size = variables[i].size;
  }
  return place;
}

}  // namespace tk

extern "C" __attribute__((visibility("default"))) void *__tls_get_addr(TlsIndex *index) {
  if (index->module == active_tls) return static_base + index->offset;
  if (index->module == own_tls && index->offset == own_offset) return dynamic_base;
  if (!next_tls_get_addr) next_tls_get_addr = reinterpret_cast<void *(*)(TlsIndex *)>(dlsym(RTLD_NEXT, "__tls_get_addr"));
  return next_tls_get_addr(index);
}
