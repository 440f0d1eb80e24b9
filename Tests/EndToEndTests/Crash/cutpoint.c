// Counts the system calls with which a program changes files below a folder, and kills the program before one of them.
//
//   LD_PRELOAD=cutpoint.so CUT_PROGRAM=patchbayd CUT_FOLDER=/state CUT_LOG=/log CUT_AT=12 CUT_MODE=kill patchbayd
//
// Each call becomes a line of CUT_LOG. CUT_MODE says what the disk has after the kill:
//   kill   everything that the calls before did
//   short  as kill, but a write has written half of its bytes
//   power  only what was synced: contents by fsync(2) of the file, names by fsync(2) of the folder
//   torn   names as with kill, contents as with power
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX], mode[8] = "kill";
static int journal = -1;
static long at, count;

// A file whose content was changed since its last sync. The descriptor stays open, because a close would end SQLite's locks.
static struct { dev_t device; ino_t inode; int number, dirty; off_t size; char *content; } files[4096];
static int fileCount;
// A change of names since the last sync of the folder.
static struct { char kind; char from[PATH_MAX], to[PATH_MAX], kept[PATH_MAX]; } names[4096];
static int nameCount, keptCount;

__attribute__((constructor)) static void start(void) {
    const char *program = getenv("CUT_PROGRAM"), *log = getenv("CUT_LOG"), *below = getenv("CUT_FOLDER");
    if (!program || !log || !below || strcmp(program, program_invocation_short_name) != 0) return;
    snprintf(folder, sizeof folder, "%s/", below);
    if (getenv("CUT_MODE")) snprintf(mode, sizeof mode, "%s", getenv("CUT_MODE"));
    if (getenv("CUT_AT")) at = atol(getenv("CUT_AT"));
    journal = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int losesData(void) { return *mode == 'p' || *mode == 't'; }
static int losesNames(void) { return *mode == 'p'; }

// Writes the whole path; false outside of the folder.
static int isBelow(int base, const char *path, char *whole) {
    if (journal < 0 || !path) return 0;
    char start[PATH_MAX] = "";
    if (*path != '/') {
        char link[64];
        snprintf(link, sizeof link, base == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", base);
        ssize_t size = readlink(link, start, sizeof start - 2);
        if (size < 0) return 0;
        start[size] = '/', start[size + 1] = 0;
    }
    if (snprintf(whole, PATH_MAX, "%s%s", start, path) >= PATH_MAX) return 0;
    char *kept = getenv("CUT_KEEP");
    if (kept && strncmp(whole, kept, strlen(kept)) == 0) return 0;
    return strncmp(whole, folder, strlen(folder)) == 0;
}

static int isOpenBelow(int number, char *whole) {
    if (journal < 0) return 0;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", number);
    ssize_t size = readlink(link, whole, PATH_MAX - 1);
    if (size < 0) return 0;
    whole[size] = 0;
    if (strncmp(whole, folder, strlen(folder)) == 0) return 1;
    return strlen(whole) + 1 == strlen(folder) && strncmp(whole, folder, strlen(whole)) == 0;
}

static void undo(void) {
    for (int i = 0; losesData() && i < fileCount; i++) {
        if (!files[i].dirty) continue;
        syscall(SYS_ftruncate, files[i].number, 0);
        if (files[i].size) syscall(SYS_pwrite64, files[i].number, files[i].content, files[i].size, 0);
    }
    for (int i = nameCount - 1; losesNames() && i >= 0; i--) {
        if (names[i].kind == 'c') syscall(SYS_unlinkat, AT_FDCWD, names[i].to, 0);
        if (names[i].kind == 'd') syscall(SYS_unlinkat, AT_FDCWD, names[i].to, AT_REMOVEDIR);
        if (names[i].kind == 'r') syscall(SYS_renameat2, AT_FDCWD, names[i].to, AT_FDCWD, names[i].from, 0);
        if (*names[i].kept) syscall(SYS_renameat2, AT_FDCWD, names[i].kept, AT_FDCWD, names[i].to, 0);
    }
}

static void die(void) {
    undo();
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

// Counts a call; true if the program ends at this one. The caller holds the lock.
static int counts(const char *call, const char *path) {
    char line[PATH_MAX + 64];
    int size = snprintf(line, sizeof line, "%ld %s %s\n", ++count, call, path + strlen(folder) - (strlen(path) < strlen(folder)));
    if (syscall(SYS_write, journal, line, size) < 0) return 0;
    return at && count == at;
}

// Remembers the content of a file that is changed now.
static void dirty(int number) {
    struct stat status;
    if (!losesData() || fstat(number, &status) || !S_ISREG(status.st_mode)) return;
    int i = 0;
    while (i < fileCount && (files[i].inode != status.st_ino || files[i].device != status.st_dev)) i++;
    if (i == fileCount) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", number);
        files[i].number = syscall(SYS_openat, AT_FDCWD, link, O_RDWR | O_CLOEXEC, 0);
        if (files[i].number < 0 || fileCount == 4095) return;
        files[i].inode = status.st_ino, files[i].device = status.st_dev;
        fileCount++;
    }
    if (files[i].dirty) return;
    files[i].dirty = 1, files[i].size = status.st_size;
    free(files[i].content);
    files[i].content = malloc(status.st_size + 1);
    if (syscall(SYS_pread64, files[i].number, files[i].content, status.st_size, 0) != status.st_size) files[i].size = 0;
}

static void synced(int number, const char *path) {
    struct stat status;
    if (fstat(number, &status)) return;
    for (int i = 0; i < fileCount; i++)
        if (files[i].inode == status.st_ino && files[i].device == status.st_dev) files[i].dirty = 0;
    if (!S_ISDIR(status.st_mode)) return;
    int kept = 0;
    size_t length = strlen(path);
    for (int i = 0; i < nameCount; i++) {
        const char *rest = names[i].to + length;
        int isInside = strncmp(names[i].to, path, length) == 0 && *rest == '/' && !strchr(rest + 1, '/');
        if (!isInside) names[kept++] = names[i];
    }
    nameCount = kept;
}

static void renames(char kind, const char *from, const char *to) {
    if (!losesNames() || nameCount == 4095) return;
    names[nameCount].kind = kind, *names[nameCount].kept = 0;
    snprintf(names[nameCount].from, PATH_MAX, "%s", from);
    snprintf(names[nameCount].to, PATH_MAX, "%s", to);
    const char *keep = getenv("CUT_KEEP");
    if ((kind == 'r' || kind == 'u') && keep) {
        char *kept = names[nameCount].kept;
        snprintf(kept, PATH_MAX, "%s/%d", keep, keptCount++);
        if (syscall(SYS_linkat, AT_FDCWD, to, AT_FDCWD, kept, 0) < 0) *kept = 0;
    }
    nameCount++;
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = dlsym(RTLD_NEXT, #name)

// A call that writes bytes to a descriptor.
#define WRITES(name, parameters, arguments, HALF, ...) \
    ssize_t name parameters { \
        REAL(ssize_t, name, __VA_ARGS__); \
        char path[PATH_MAX]; \
        if (!isOpenBelow(number, path)) return real arguments; \
        pthread_mutex_lock(&lock); \
        if (counts(#name, path)) { \
            if (*mode == 's') HALF; \
            die(); \
        } \
        dirty(number); \
        ssize_t result = real arguments; \
        int code = errno; \
        pthread_mutex_unlock(&lock); \
        errno = code; \
        return result; \
    }
WRITES(write, (int number, const void *bytes, size_t size), (number, bytes, size), real(number, bytes, size / 2), int, const void *, size_t)
WRITES(pwrite, (int number, const void *bytes, size_t size, off_t place), (number, bytes, size, place),
        real(number, bytes, size / 2, place), int, const void *, size_t, off_t)
WRITES(pwrite64, (int number, const void *bytes, size_t size, off_t place), (number, bytes, size, place),
        real(number, bytes, size / 2, place), int, const void *, size_t, off_t)
WRITES(writev, (int number, const struct iovec *parts, int size), (number, parts, size), real(number, parts, size / 2),
        int, const struct iovec *, int)

// A call that changes the content or the state of a descriptor.
#define CHANGES(name, parameters, arguments, BEFORE, AFTER, ...) \
    int name parameters { \
        REAL(int, name, __VA_ARGS__); \
        char path[PATH_MAX]; \
        if (!isOpenBelow(number, path)) return real arguments; \
        pthread_mutex_lock(&lock); \
        if (counts(#name, path)) die(); \
        BEFORE; \
        int result = real arguments; \
        int code = errno; \
        if (result == 0) { AFTER; } \
        pthread_mutex_unlock(&lock); \
        errno = code; \
        return result; \
    }
CHANGES(fsync, (int number), (number), , synced(number, path), int)
CHANGES(fdatasync, (int number), (number), , synced(number, path), int)
CHANGES(ftruncate, (int number, off_t size), (number, size), dirty(number), , int, off_t)
CHANGES(ftruncate64, (int number, off_t size), (number, size), dirty(number), , int, off_t)
CHANGES(fallocate, (int number, int kind, off_t place, off_t size), (number, kind, place, size), dirty(number), , int, int, off_t, off_t)
CHANGES(fallocate64, (int number, int kind, off_t place, off_t size), (number, kind, place, size), dirty(number), , int, int, off_t, off_t)
CHANGES(posix_fallocate, (int number, off_t place, off_t size), (number, place, size), dirty(number), , int, off_t, off_t)
CHANGES(fchmod, (int number, mode_t bits), (number, bits), , , int, mode_t)
CHANGES(fchown, (int number, uid_t user, gid_t group), (number, user, group), , , int, uid_t, gid_t)

// A call that changes a name.
#define NAMES(name, parameters, arguments, base, target, BEFORE, AFTER, ...) \
    int name parameters { \
        REAL(int, name, __VA_ARGS__); \
        char path[PATH_MAX]; \
        if (!isBelow(base, target, path)) return real arguments; \
        pthread_mutex_lock(&lock); \
        if (counts(#name, path)) die(); \
        BEFORE; \
        int result = real arguments; \
        int code = errno; \
        if (result == 0) { AFTER; } \
        pthread_mutex_unlock(&lock); \
        errno = code; \
        return result; \
    }
#define MOVES(base, from) char origin[PATH_MAX]; int isKnown = isBelow(base, from, origin); if (isKnown) renames('r', origin, path)
NAMES(rename, (const char *from, const char *to), (from, to), AT_FDCWD, to, MOVES(AT_FDCWD, from), , const char *, const char *)
NAMES(renameat, (int base, const char *from, int other, const char *to), (base, from, other, to), other, to, MOVES(base, from),
        , int, const char *, int, const char *)
NAMES(renameat2, (int base, const char *from, int other, const char *to, unsigned flags), (base, from, other, to, flags),
        other, to, MOVES(base, from), , int, const char *, int, const char *, unsigned)
NAMES(link, (const char *from, const char *to), (from, to), AT_FDCWD, to, , renames('c', from, path), const char *, const char *)
NAMES(symlink, (const char *from, const char *to), (from, to), AT_FDCWD, to, , renames('c', from, path), const char *, const char *)
NAMES(unlink, (const char *file), (file), AT_FDCWD, file, if (access(path, F_OK) == 0) renames('u', path, path), , const char *)
NAMES(unlinkat, (int base, const char *file, int flags), (base, file, flags),
        base, file, if (!flags && access(path, F_OK) == 0) renames('u', path, path), , int, const char *, int)
NAMES(rmdir, (const char *file), (file), AT_FDCWD, file, , , const char *)
NAMES(mkdir, (const char *file, mode_t bits), (file, bits), AT_FDCWD, file, , renames('d', path, path), const char *, mode_t)
NAMES(chmod, (const char *file, mode_t bits), (file, bits), AT_FDCWD, file, , , const char *, mode_t)
NAMES(truncate, (const char *file, off_t size), (file, size), AT_FDCWD, file, , , const char *, off_t)

// A call that opens a file; counted if it may create or empty one.
#define OPENS(name, parameters, arguments, base, ...) \
    int name parameters { \
        REAL(int, name, __VA_ARGS__, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t bits = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        char path[PATH_MAX]; \
        if (!(flags & (O_CREAT | O_TRUNC)) || !isBelow(base, file, path)) return real arguments; \
        pthread_mutex_lock(&lock); \
        int existed = access(path, F_OK) == 0; \
        if (!(existed && !(flags & (O_TRUNC | O_EXCL))) && counts(#name, path)) die(); \
        int result = real arguments; \
        int code = errno; \
        if (result >= 0 && !existed) renames('c', path, path); \
        if (result >= 0 && !existed) dirty(result); \
        pthread_mutex_unlock(&lock); \
        errno = code; \
        return result; \
    }
OPENS(open, (const char *file, int flags, ...), (file, flags, bits), AT_FDCWD, const char *, int)
OPENS(open64, (const char *file, int flags, ...), (file, flags, bits), AT_FDCWD, const char *, int)
OPENS(openat, (int base, const char *file, int flags, ...), (base, file, flags, bits), base, int, const char *, int)
OPENS(openat64, (int base, const char *file, int flags, ...), (base, file, flags, bits), base, int, const char *, int)

// The end of the program counts too, because what it has acknowledged must be on the disk.
__attribute__((destructor)) static void end(void) {
    if (journal < 0) return;
    pthread_mutex_lock(&lock);
    if (count && counts("exit", folder)) die();
    pthread_mutex_unlock(&lock);
}
