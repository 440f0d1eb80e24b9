/* The Linux calls that Swift's Glibc module leaves out, and the ones whose C shape Swift cannot import.
 * Declared here by hand where glibc hides them behind _GNU_SOURCE, which Swift's Clang importer does not define. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <malloc.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

extern int accept4(int, struct sockaddr *, socklen_t *, int);
extern int pipe2(int *, int);
extern int pthread_setname_np(pthread_t, const char *);
extern ssize_t splice(int, off_t *, int, off_t *, size_t, unsigned);

/* accept4(2): the connection is non-blocking and closed on exec from its first moment. */
static inline int CLinux_accept(int listener)
{
	return accept4(listener, 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* socket(2) with the same two flags; the flags are an enum in glibc, which Swift cannot combine. */
static inline int CLinux_socket(int domain)
{
	return socket(domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* A socket of NETLINK_SOCK_DIAG (sock_diag(7)), which answers from within the send. */
static inline int CLinux_diag_socket(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

/* fcntl(2) is variadic, so Swift does not see it. A duplicate that does not survive exec. */
static inline int CLinux_duplicate(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static inline int CLinux_set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 ? flags : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/* F_SETPIPE_SZ of fcntl(2); the pipe keeps its size where the user has too many large ones. */
static inline void CLinux_set_pipe_size(int fd, int size)
{
	(void)fcntl(fd, 1031, size);
}

static inline int CLinux_set_close_on_exec(int fd)
{
	return fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* fallocate(2) with FALLOC_FL_KEEP_SIZE: blocks for what will be written, without changing how long the file is. */
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

/* M_ARENA_MAX of mallopt(3): how many heaps there may be, where glibc would make eight for each core. */
static inline void CLinux_limit_heaps(int count)
{
	(void)mallopt(M_ARENA_MAX, count);
}

/* M_MMAP_THRESHOLD of mallopt(3): blocks of so many bytes are mapped one by one, and unmapped when they are freed. Set once, it no
 * longer grows with the blocks that are freed. */
static inline void CLinux_map_blocks(int size)
{
	(void)mallopt(M_MMAP_THRESHOLD, size);
}

static inline void CLinux_set_thread_name(const char *name)
{
	(void)pthread_setname_np(pthread_self(), name);
}

/* SO_PEERCRED (unix(7)): who listens behind a connected unix socket. struct ucred is hidden behind _GNU_SOURCE; it is three
 * 32-bit numbers, the process first. */
static inline int CLinux_peer_process(int fd, pid_t *process)
{
	int32_t credentials[3] = { 0 };
	socklen_t length = sizeof credentials;
	int result = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, credentials, &length);

	*process = credentials[0];
	return result;
}

/* flock(2), whose name is a struct as well. Never waits: another holder makes it fail with EWOULDBLOCK. */
static inline int CLinux_try_lock(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB);
}
