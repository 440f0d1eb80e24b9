/* libusbmuxd 2.0, the alternative client of the module Devices, and the calls that isolate it from the rest of the process.
 * glibc declares some of these calls only with _GNU_SOURCE, which Swift's Clang importer does not define. */
#pragma once

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <usbmuxd.h>

extern int close_range(unsigned, unsigned, int);
extern int unshare(int);

/* Gives the calling thread its own descriptor table (unshare(2), CLONE_FILES) that contains only fd and 0 to 2.
 * Also blocks SIGPIPE on the thread, because the library sends without MSG_NOSIGNAL. */
static inline int CUsbmuxd_isolate_descriptors(int fd)
{
	sigset_t signals;

	if (unshare(0x400) < 0)
		return -1;
	if (fd > 3)
		close_range(3, (unsigned)fd - 1, 0);
	close_range(fd < 3 ? 3 : (unsigned)fd + 1, ~0u, 0);
	sigemptyset(&signals);
	sigaddset(&signals, SIGPIPE);
	return pthread_sigmask(SIG_BLOCK, &signals, 0);
}

/* Sends one byte and, if fd is not negative, the descriptor fd (sendmsg(2), SCM_RIGHTS, unix(7)). */
static inline ssize_t CUsbmuxd_send_descriptor(int channel, int fd)
{
	char byte = 0;
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };

	if (fd >= 0) {
		memset(&control, 0, sizeof control);
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof control.bytes;
		CMSG_FIRSTHDR(&message)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&message)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&message)->cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof fd);
	}
	return sendmsg(channel, &message, MSG_NOSIGNAL);
}

/* Receives one byte and stores the descriptor sent with it in fd, or -1 if there was none (recvmsg(2)). */
static inline ssize_t CUsbmuxd_receive_descriptor(int channel, int *fd)
{
	char byte;
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1,
		.msg_control = control.bytes, .msg_controllen = sizeof control.bytes };
	ssize_t count = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *header = count > 0 ? CMSG_FIRSTHDR(&message) : 0;

	*fd = -1;
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(header), sizeof *fd);
	return count;
}
