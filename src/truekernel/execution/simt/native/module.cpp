// Compiled kernels: opening a library, its static variables, and what its symbol table says about shared memory.
#include "module.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

namespace tk {

tk_module *active_module;

const Code &module_code(const tk_module *m) { return m->code; }
uint64_t module_tls_size(const tk_module *m) { return m ? m->tls_size : 0; }
const SharedVariable *module_shared(const tk_module *m, size_t *count) {
  *count = m->shared_count;
  return m->shared;
}

namespace {

struct File {
  const char *bytes = nullptr;
  size_t size = 0;

  explicit File(const char *path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (fd < 0) return;
    if (fstat(fd, &about) == 0 && about.st_size > 0) {
      void *p = mmap(nullptr, size_t(about.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
      if (p != MAP_FAILED) {
        bytes = static_cast<const char *>(p);
        size = size_t(about.st_size);
      }
    }
    close(fd);
  }
  ~File() {
    if (bytes) munmap(const_cast<char *>(bytes), size);
  }
};

struct Symbols {
  const Elf64_Sym *first = nullptr;
  size_t count = 0;
  const char *names = nullptr;
};

Symbols symbol_table(const File &file) {
  Symbols out;
  if (file.size < sizeof(Elf64_Ehdr)) return out;
  auto header = reinterpret_cast<const Elf64_Ehdr *>(file.bytes);
  if (header->e_shoff + uint64_t(header->e_shnum) * sizeof(Elf64_Shdr) > file.size) return out;
  auto sections = reinterpret_cast<const Elf64_Shdr *>(file.bytes + header->e_shoff);
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    out.first = reinterpret_cast<const Elf64_Sym *>(file.bytes + sections[i].sh_offset);
    out.count = sections[i].sh_size / sizeof(Elf64_Sym);
    out.names = file.bytes + sections[sections[i].sh_link].sh_offset;
  }
  return out;
}

int by_offset(const void *a, const void *b) {
  const auto x = static_cast<const SharedVariable *>(a)->offset, y = static_cast<const SharedVariable *>(b)->offset;
  return x < y ? -1 : x > y;
}

void read_variables(tk_module *m) {
  const File file(m->path);
  const Symbols symbols = symbol_table(file);
  m->shared = static_cast<SharedVariable *>(calloc(symbols.count + 1, sizeof(SharedVariable)));
  m->functions = static_cast<SharedVariable *>(calloc(symbols.count + 1, sizeof(SharedVariable)));
  m->globals = static_cast<SharedVariable *>(calloc(symbols.count + 1, sizeof(SharedVariable)));
  for (size_t i = 0; i < symbols.count; ++i) {
    const Elf64_Sym &symbol = symbols.first[i];
    if (!symbol.st_size || symbol.st_shndx == SHN_UNDEF) continue;
    const char *name = symbols.names + symbol.st_name;
    if (ELF64_ST_TYPE(symbol.st_info) == STT_TLS)
      m->shared[m->shared_count++] = {symbol.st_value, symbol.st_size, strdup(name)};
    else if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && !strncmp(name, "_Z", 2))
      m->functions[m->functions_count++] = {symbol.st_value, symbol.st_size, strdup(name)};
    else if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT)
      m->globals[m->globals_count++] = {symbol.st_value, symbol.st_size, strdup(name)};
  }
  qsort(m->shared, m->shared_count, sizeof(SharedVariable), by_offset);
  qsort(m->globals, m->globals_count, sizeof(SharedVariable), by_offset);
}

struct Search {
  uintptr_t base;
  tk_module *module;
};

int read_segments(dl_phdr_info *info, size_t, void *data) {
  auto search = static_cast<Search *>(data);
  if (info->dlpi_addr != search->base) return 0;
  tk_module *m = search->module;
  Code &code = m->code;
  code = {info->dlpi_addr, ~0ull, 0, 0, 0};
  uint64_t relocated_end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = info->dlpi_phdr[i];
    const uint64_t low = info->dlpi_addr + segment.p_vaddr, high = low + segment.p_memsz;
    if (segment.p_type == PT_TLS) m->tls_size = segment.p_memsz;
    if (segment.p_type == PT_GNU_RELRO) relocated_end = high;
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_flags & PF_X) {
      if (low < code.text_low) code.text_low = low;
      if (high > code.text_high) code.text_high = high;
    }
    if (segment.p_flags & PF_W) {
      code.data_low = low;
      code.data_high = high;
    }
  }
  // The front part of the writable segment became read-only when the library was loaded.
  relocated_end &= ~uint64_t(kPage - 1);
  if (relocated_end > code.data_low && relocated_end <= code.data_high) code.data_low = relocated_end;
  m->tls_module = info->dlpi_tls_modid;
  return 1;
}

}  // namespace

uint64_t kernel_static_shared(const tk_module *m, const tk_kernel *kernel) {
  const uint64_t offset = reinterpret_cast<uint64_t>(kernel->address) - m->code.base;
  uint64_t bytes = 0;
  for (size_t i = 0; i < m->functions_count; ++i) {
    if (m->functions[i].offset != offset) continue;
    // A local variable's mangled name is _ZZ <function's encoding> E <its own name>.
    char prefix[1024];
    const int n = snprintf(prefix, sizeof prefix, "_ZZ%sE", m->functions[i].name + 2);
    if (n < 0 || size_t(n) >= sizeof prefix) return 0;
    for (size_t j = 0; j < m->shared_count; ++j)
      if (!strncmp(m->shared[j].name, prefix, size_t(n))) bytes += m->shared[j].size;
    break;
  }
  return bytes;
}

const char *global_name(uint64_t address, int64_t *offset, uint64_t *size) {
  const tk_module *m = active_module;
  if (!m || address < m->code.data_low || address >= m->code.data_high) return nullptr;
  const char *name = nullptr;
  for (size_t i = 0; i < m->globals_count; ++i) {
    const SharedVariable &variable = m->globals[i];
    if (m->code.base + variable.offset > address) break;
    name = variable.name;
    *offset = int64_t(address - m->code.base - variable.offset);
    *size = variable.size;
  }
  return name;
}

}  // namespace tk

using namespace tk;

extern "C" tk_module *tk_module_open(const char *path, char *error, size_t error_size) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    if (error_size) snprintf(error, error_size, "%s", dlerror());
    return nullptr;
  }
  auto m = static_cast<tk_module *>(calloc(1, sizeof(tk_module)));
  m->handle = handle;
  m->path = strdup(path);
  link_map *map = nullptr;
  dlinfo(handle, RTLD_DI_LINKMAP, &map);
  Search search{map->l_addr, m};
  dl_iterate_phdr(read_segments, &search);
  read_variables(m);
  m->initial_size = m->code.data_high - m->code.data_low;
  m->initial = static_cast<char *>(malloc(m->initial_size + 1));
  memcpy(m->initial, reinterpret_cast<const char *>(m->code.data_low), m->initial_size);
  return m;
}

extern "C" const tk_kernel *tk_module_kernel(tk_module *m, const char *symbol) {
  return static_cast<const tk_kernel *>(dlsym(m->handle, symbol));
}

extern "C" uint64_t tk_module_static_shared(const tk_module *m) { return m->tls_size; }

extern "C" void tk_module_reset(tk_module *m) {
  auto data = reinterpret_cast<char *>(m->code.data_low);
  // Comparing first keeps pages shared with the server.
  if (m->initial_size && memcmp(data, m->initial, m->initial_size) != 0) memcpy(data, m->initial, m->initial_size);
}

extern "C" void tk_module_close(tk_module *m) {
  if (!m) return;
  for (size_t i = 0; i < m->shared_count; ++i) free(const_cast<char *>(m->shared[i].name));
  for (size_t i = 0; i < m->globals_count; ++i) free(const_cast<char *>(m->globals[i].name));
  for (size_t i = 0; i < m->functions_count; ++i) free(const_cast<char *>(m->functions[i].name));
  free(m->functions);
  free(m->shared);
  free(m->globals);
  free(m->initial);
  free(m->path);
  dlclose(m->handle);
  free(m);
}
