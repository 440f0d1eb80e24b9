/* Linux calls that are missing in Swift's Glibc module, or that Swift cannot import.
 * Functions that glibc hides behind _GNU_SOURCE are declared by hand, because Swift's Clang importer does not define that
 * macro. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <malloc.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/types.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

extern int accept4(int, struct sockaddr *, socklen_t *, int);
extern int pipe2(int *, int);
extern int pthread_setname_np(pthread_t, const char *);
extern ssize_t splice(int, off_t *, int, off_t *, size_t, unsigned);

/* accept4(2): the connection is non-blocking and close-on-exec from the start. */
static inline int CLinux_accept(int listener)
{
	return accept4(listener, 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* The same with the peer's address. */
static inline int CLinux_accept_from(int listener, struct sockaddr_storage *peer)
{
	socklen_t length = sizeof *peer;

	return accept4(listener, (struct sockaddr *)peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* socket(2) with the same two flags. In glibc the flags are an enum, which Swift cannot combine. */
static inline int CLinux_socket(int domain)
{
	return socket(domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* A NETLINK_SOCK_DIAG socket (sock_diag(7)). The kernel answers within send(2). */
static inline int CLinux_diag_socket(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

/* Duplicates a descriptor with close-on-exec. fcntl(2) is variadic and therefore unavailable in Swift. */
static inline int CLinux_duplicate(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static inline int CLinux_set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 ? flags : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/* F_SETPIPE_SZ of fcntl(2). The pipe keeps its size if the user has too many large pipes. */
static inline void CLinux_set_pipe_size(int fd, int size)
{
	(void)fcntl(fd, 1031, size);
}

static inline int CLinux_set_close_on_exec(int fd)
{
	return fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* fallocate(2) with FALLOC_FL_KEEP_SIZE: reserves blocks for later writes without changing the file's size. */
extern int fallocate(int, int, off_t, off_t);

static inline int CLinux_reserve(int fd, off_t start, off_t length)
{
	return fallocate(fd, 1, start, length);
}

/* getrlimit(2) and setrlimit(2) on RLIMIT_NOFILE, an enum constant in glibc. */
static inline int CLinux_get_descriptor_limit(struct rlimit *limit)
{
	return getrlimit(RLIMIT_NOFILE, limit);
}

static inline int CLinux_set_descriptor_limit(const struct rlimit *limit)
{
	return setrlimit(RLIMIT_NOFILE, limit);
}

/* clock_gettime(2) in nanoseconds. In a release build, Swift may take `struct timespec` for a type of CoreFoundation, and
 * then refuses it in a file that imports Glibc alone. */
static inline int64_t CLinux_nanoseconds(clockid_t clock)
{
	struct timespec time = { 0 };

	(void)clock_gettime(clock, &time);
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Returns 1 if a time server keeps the system clock (STA_UNSYNC of ntp_adjtime(3)), otherwise 0. */
static inline int CLinux_clock_is_synchronized(void)
{
	struct timex state = { 0 };

	return ntp_adjtime(&state) >= 0 && !(state.status & STA_UNSYNC);
}

/* M_ARENA_MAX of mallopt(3): the maximum number of heaps. The default is eight per core. */
static inline void CLinux_limit_heaps(int count)
{
	(void)mallopt(M_ARENA_MAX, count);
}

/* M_MMAP_THRESHOLD of mallopt(3): blocks of at least this size in bytes are mapped separately and unmapped when freed.
 * Setting the threshold also stops glibc from raising it when such blocks are freed. */
static inline void CLinux_map_blocks(int size)
{
	(void)mallopt(M_MMAP_THRESHOLD, size);
}

/* Unmaps the program's own code; a page that is needed again comes back from the page cache. The start reads tables of
 * Swift's runtime that nothing reads later. Nothing writes to a segment with code, so MADV_DONTNEED (madvise(2)) loses
 * nothing. AT_PHDR (getauxval(3)) are the program headers (elf(5)). */
static inline void CLinux_release_code(void)
{
	const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	const ElfW(Phdr) *end = headers + getauxval(AT_PHNUM);
	uintptr_t base = 0, page = (uintptr_t)sysconf(_SC_PAGESIZE);

	for (const ElfW(Phdr) *header = headers; header < end; header++) {
		if (header->p_type == PT_PHDR)
			base = (uintptr_t)headers - header->p_vaddr;
		if (header->p_type != PT_LOAD || (header->p_flags & (PF_X | PF_W)) != PF_X)
			continue;
		uintptr_t start = (base + header->p_vaddr + page - 1) / page * page;
		uintptr_t stop = (base + header->p_vaddr + header->p_filesz) / page * page;
		(void)madvise((void *)start, stop - start, MADV_DONTNEED);
	}
}

static inline void CLinux_set_thread_name(const char *name)
{
	(void)pthread_setname_np(pthread_self(), name);
}

/* SO_PEERCRED (unix(7)): the process that listens on the peer of a connected unix socket. struct ucred is hidden behind
 * _GNU_SOURCE; it has three 32-bit numbers, the PID first. */
static inline int CLinux_peer_process(int fd, pid_t *process)
{
	int32_t credentials[3] = { 0 };
	socklen_t length = sizeof credentials;
	int result = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, credentials, &length);

	*process = credentials[0];
	return result;
}

/* SO_PEERCRED: the user of the process that connected; UINT32_MAX if the kernel does not know it. */
static inline uint32_t CLinux_peer_user(int fd)
{
	int32_t credentials[3] = { 0, -1, -1 };
	socklen_t length = sizeof credentials;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, credentials, &length) == 0 ? (uint32_t)credentials[1] : UINT32_MAX;
}

/* flock(2) without blocking: fails with EWOULDBLOCK if another holder has the lock. The name is a struct as well, so
 * Swift cannot import the function. */
static inline int CLinux_try_lock(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB);
}

/* Starts a program with the three streams. The kernel sends it SIGTERM when the calling thread ends, even by SIGKILL
 * (PR_SET_PDEATHSIG of prctl(2), which posix_spawn(3) lacks). The program stays in the process group, so that it may read
 * the terminal. It ignores SIGINT, because Ctrl-C is for its parent. The exit status is 127 if the program cannot run. */
static inline pid_t CLinux_spawn(const char *path, char *const *arguments, int input, int output, int errors)
{
	pid_t parent = getpid();
	pid_t child = fork();
	sigset_t none;

	if (child != 0)
		return child;
	/* Only functions of signal-safety(7) from here, because other threads may have held locks. */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)
		_exit(127);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	signal(SIGINT, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, 0);
	if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(errors, 2) < 0)
		_exit(127);
	execv(path, arguments);
	_exit(127);
}

/* pidfd_open(2): a descriptor that is readable when the process has ended. */
static inline int CLinux_open_process(pid_t process)
{
	return (int)syscall(SYS_pidfd_open, process, 0);
}

/* O_PATH of open(2): a handle of a file that stays valid without the file's name. */
static inline int CLinux_open_handle(const char *path)
{
	return open(path, 010000000 | O_CLOEXEC | O_NOFOLLOW);
}
