/* Makes the N-th change of a file below one folder fail: loaded before libc with LD_PRELOAD.
 *
 * Counted are the calls by which SQLite and Python write, sync, lock and remove files. The program itself sets what
 * fails and when (fault_set), and asks how many calls there were (fault_count) and what the failed one was (fault_name).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char root[PATH_MAX];
static long at = -1, count;
static int error, lasting, halves, only = -1;
static const char *failed = "";

static const char *names[] = {"open", "write", "sync", "truncate", "lock", "unlock", "unlink", "rename", "link"};
enum { OPEN, WRITE, SYNC, TRUNCATE, LOCK, UNLOCK, UNLINK, RENAME, LINK };

/* Call number `when` of kind `kind` (-1: of any kind) fails with `code`, and those after it if `last`; 0 writes half. */
void fault_set(const char *folder, long when, int code, int last, int kind) {
    snprintf(root, sizeof root, "%s/", folder);
    at = when, error = code, lasting = last, halves = code == 0, only = kind, count = 0, failed = "";
}

void fault_off(void) { at = -1; root[0] = 0; }
long fault_count(void) { return count; }
const char *fault_name(void) { return failed; }

static int below(const char *path) {
    char full[PATH_MAX];
    if (!root[0] || !path) return 0;
    if (path[0] == '/') return strncmp(path, root, strlen(root)) == 0;
    if (!getcwd(full, sizeof full)) return 0;
    strncat(full, "/", sizeof full - strlen(full) - 1);
    return strncmp(full, root, strlen(root)) == 0;
}

static int below_fd(int fd) {
    char link[64], path[PATH_MAX];
    if (!root[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return below(path);
}

/* 0: go on; 1: fail; 2: write half */
static int decide(int kind) {
    if (only >= 0 && kind != only) return 0;
    long number = count++;
    if (at < 0 || number < at || (number > at && !lasting)) return 0;
    if (halves && kind != WRITE) return 0;
    failed = names[kind];
    if (halves) return 2;
    errno = error;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPENS(name)                                                   \
    int name(const char *path, int flags, ...) {                      \
        static __typeof__(&name) real;                                \
        if (!real) real = REAL(name);                                 \
        va_list rest;                                                 \
        va_start(rest, flags);                                        \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                 \
        if ((flags & O_ACCMODE) != O_RDONLY && below(path) && decide(OPEN)) return -1; \
        return real(path, flags, mode);                               \
    }
OPENS(open)
OPENS(open64)

#define OPENSAT(name)                                                 \
    int name(int folder, const char *path, int flags, ...) {          \
        static __typeof__(&name) real;                                \
        if (!real) real = REAL(name);                                 \
        va_list rest;                                                 \
        va_start(rest, flags);                                        \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                 \
        if ((flags & O_ACCMODE) != O_RDONLY && below(path) && decide(OPEN)) return -1; \
        return real(folder, path, flags, mode);                       \
    }
OPENSAT(openat)
OPENSAT(openat64)

#define HALF(n) ((n) > 1 ? (n) / 2 : (n))

ssize_t write(int fd, const void *data, size_t n) {
    static __typeof__(&write) real;
    if (!real) real = REAL(write);
    int what = below_fd(fd) ? decide(WRITE) : 0;
    return what == 1 ? -1 : real(fd, data, what == 2 ? HALF(n) : n);
}

#define PWRITES(name, offset_t)                                       \
    ssize_t name(int fd, const void *data, size_t n, offset_t where) { \
        static __typeof__(&name) real;                                \
        if (!real) real = REAL(name);                                 \
        int what = below_fd(fd) ? decide(WRITE) : 0;                  \
        return what == 1 ? -1 : real(fd, data, what == 2 ? HALF(n) : n, where); \
    }
PWRITES(pwrite, off_t)
PWRITES(pwrite64, off64_t)

#define ON_FD(name, kind, arguments, given)                           \
    int name arguments {                                              \
        static __typeof__(&name) real;                                \
        if (!real) real = REAL(name);                                 \
        if (below_fd(fd) && decide(kind) == 1) return -1; \
        return real given;                                            \
    }
ON_FD(fsync, SYNC, (int fd), (fd))
ON_FD(fdatasync, SYNC, (int fd), (fd))
ON_FD(ftruncate, TRUNCATE, (int fd, off_t length), (fd, length))
ON_FD(ftruncate64, TRUNCATE, (int fd, off64_t length), (fd, length))

#define LOCKS(name)                                                   \
    int name(int fd, int command, ...) {                              \
        static __typeof__(&name) real;                                \
        if (!real) real = REAL(name);                                 \
        va_list rest;                                                 \
        va_start(rest, command);                                      \
        void *argument = va_arg(rest, void *);                        \
        va_end(rest);                                                 \
        int sets = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW; \
        int kind = sets && ((struct flock *)argument)->l_type == F_UNLCK ? UNLOCK : LOCK; \
        if (sets && below_fd(fd) && decide(kind) == 1) return -1;     \
        return real(fd, command, argument);                           \
    }
LOCKS(fcntl)
LOCKS(fcntl64)

/* SQLite sleeps before it tries again, ten seconds in all */
int usleep(useconds_t duration) {
    static __typeof__(&usleep) real;
    if (!real) real = REAL(usleep);
    return at >= 0 ? 0 : real(duration);
}

#define ON_PATH(name, kind, arguments, path, given)                   \
    int name arguments {                                              \
        static __typeof__(&name) real;                                \
        if (!real) real = REAL(name);                                 \
        if (below(path) && decide(kind) == 1) return -1;              \
        return real given;                                            \
    }
ON_PATH(unlink, UNLINK, (const char *path), path, (path))
ON_PATH(unlinkat, UNLINK, (int folder, const char *path, int flags), path, (folder, path, flags))
ON_PATH(rename, RENAME, (const char *from, const char *to), to, (from, to))
ON_PATH(renameat, RENAME, (int a, const char *from, int b, const char *to), to, (a, from, b, to))
ON_PATH(link, LINK, (const char *from, const char *to), to, (from, to))
ON_PATH(linkat, LINK, (int a, const char *from, int b, const char *to, int flags), to, (a, from, b, to, flags))
