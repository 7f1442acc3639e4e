/* Makes one call fail, and tells so: for tests, loaded by LD_PRELOAD.

   NSIMPLEX_FAIL="CALL NUMBER ERRNO" is the NUMBER-th call of that kind, counted from 1; 0 counts only. Calls count from the
   start of main, when the libraries are ready, and only where they have to do with files that are written (open, write,
   rename, fsync), with memory of some size (memory), or with pages (map: those that files are read into). NSIMPLEX_FAIL_LOG is the file that says what came to pass. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kSize = 1 << 16 }; /* bytes of an allocation that counts */

enum Call { kOpen, kWrite, kRename, kFsync, kMemory, kMap, kCalls };
static const char* const kNames[] = {"open", "write", "rename", "fsync", "memory", "map"};

static atomic_int active, counts[kCalls];
static int chosen = -1, number, code;

static void say(const char* text, int value) {
  const char* path = getenv("NSIMPLEX_FAIL_LOG");
  const int file = path ? openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
  if (file < 0) return;
  dprintf(file, "%s %d\n", text, value);
  close(file);
}

/* Whether this call is the one that fails; errno is set then. */
static int fails(enum Call call) {
  if (!atomic_load(&active)) return 0;
  const int count = atomic_fetch_add(&counts[call], 1) + 1;
  if ((int)call != chosen || count != number) return 0;
  atomic_store(&active, 0);
  say("failed", count);
  atomic_store(&active, 1);
  errno = code;
  return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int (*real_main)(int, char**, char**);

static void say_counts(void) {
  atomic_store(&active, 0);
  for (int call = 0; call < kCalls; ++call) say(kNames[call], atomic_load(&counts[call]));
}

static int counted;

/* Commands end by this, without the functions of atexit. */
void _Exit(int status) {
  if (counted) say_counts();
  _exit(status);
}

static int counted_main(int argc, char** argv, char** environment) {
  const char* wanted = getenv("NSIMPLEX_FAIL");
  char name[16] = "";
  if (getenv("NSIMPLEX_FAIL_IN_CHILD")) { /* of the program that this one starts, and not of its own */
    unsetenv("NSIMPLEX_FAIL_IN_CHILD");
    return real_main(argc, argv, environment);
  }
  if (wanted && sscanf(wanted, "%15s %d %d", name, &number, &code) == 3) {
    for (int call = 0; call < kCalls; ++call) {
      if (strcmp(name, kNames[call]) == 0) chosen = call;
    }
    unsetenv("LD_PRELOAD"); /* not of other programs that this one starts */
    atomic_store(&active, 1);
  }
  atexit(say_counts); /* also of a program that does not return from main */
  counted = 1;
  const int result = real_main(argc, argv, environment);
  atomic_store(&active, 0);
  return result;
}

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void* stack_end) {
  int (*start)(int (*)(int, char**, char**), int, char**, void (*)(void), void (*)(void),
               void (*)(void), void*) = dlsym(RTLD_NEXT, "__libc_start_main");
  real_main = main;
  return start(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

#define OPENS(name)                                   \
  int name(const char* path, int flags, ...) {        \
    va_list rest;                                     \
    va_start(rest, flags);                            \
    const mode_t mode = va_arg(rest, int);            \
    va_end(rest);                                     \
    if ((flags & O_CREAT) && fails(kOpen)) return -1; \
    return REAL(name)(path, flags, mode);             \
  }
OPENS(open)
OPENS(open64)

FILE* fopen(const char* path, const char* mode) {
  if (strpbrk(mode, "wa+") && fails(kOpen)) return NULL;
  return REAL(fopen)(path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  if (strpbrk(mode, "wa+") && fails(kOpen)) return NULL;
  return REAL(fopen64)(path, mode);
}

static int is_file(int descriptor) {
  struct stat facts;
  return fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode);
}

ssize_t write(int descriptor, const void* data, size_t size) {
  if (is_file(descriptor) && fails(kWrite)) return -1;
  return REAL(write)(descriptor, data, size);
}

ssize_t writev(int descriptor, const struct iovec* parts, int count) {
  if (is_file(descriptor) && fails(kWrite)) return -1;
  return REAL(writev)(descriptor, parts, count);
}

int rename(const char* from, const char* to) {
  return fails(kRename) ? -1 : REAL(rename)(from, to);
}

/* Folders that are synced are told by number: two descriptors of one folder have the same. */
int fsync(int descriptor) {
  struct stat facts;
  if (fstat(descriptor, &facts) == 0 && S_ISDIR(facts.st_mode)) say("folder", (int)facts.st_ino);
  return fails(kFsync) ? -1 : REAL(fsync)(descriptor);
}

#define MAPS(name, offset_type)                                                                \
  void* name(void* place, size_t size, int access, int flags, int file, offset_type offset) {  \
    if (fails(kMap)) return MAP_FAILED;                                                        \
    return REAL(name)(place, size, access, flags, file, offset);                               \
  }
MAPS(mmap, off_t)
MAPS(mmap64, off64_t)

void* mremap(void* old, size_t old_size, size_t size, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  void* const place = flags & MREMAP_FIXED ? va_arg(rest, void*) : NULL;
  va_end(rest);
  return fails(kMap) ? MAP_FAILED : REAL(mremap)(old, old_size, size, flags, place);
}

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) { return size >= kSize && fails(kMemory) ? NULL : __libc_malloc(size); }

void* calloc(size_t count, size_t size) {
  return count * size >= kSize && fails(kMemory) ? NULL : __libc_calloc(count, size);
}

void* realloc(void* old, size_t size) {
  return size >= kSize && fails(kMemory) ? NULL : __libc_realloc(old, size);
}

int posix_memalign(void** result, size_t alignment, size_t size) {
  if (size >= kSize && fails(kMemory)) return ENOMEM;
  *result = __libc_memalign(alignment, size);
  return *result == NULL ? ENOMEM : 0;
}

void* aligned_alloc(size_t alignment, size_t size) {
  return size >= kSize && fails(kMemory) ? NULL : __libc_memalign(alignment, size);
}
