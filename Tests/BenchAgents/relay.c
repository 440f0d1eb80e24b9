/* relay ADB-PORT SERIAL PORT: the least program that leads a local port to a port of a phone through adb's smart socket.
 *
 * A yardstick for android.py: one epoll loop, and one connection to the adb server that has named the phone in advance. It
 * checks nothing: neither the user of a client, nor its bytes, nor the phone. Prints its local port. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define SIZE (256 << 10)

/* One side of a connection, with the bytes that the other side does not accept yet. */
struct side {
	int fd;
	struct side *peer;
	char *rest;
	size_t begin, end;
};

static int poller, adb_port, spare = -1, spare_is_ready;
static char phone[300], target[300], scratch[SIZE];
static struct side listening, waiting;

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void set_options(int fd)
{
	int one = 1;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void ask(int fd, const char *request)
{
	char text[320];
	int length = snprintf(text, sizeof text, "%04zx%s", strlen(request), request);
	if (send(fd, text, length, MSG_NOSIGNAL) != length)
		exit(1);
}

static void watch(int operation, int fd, void *what)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = what};
	epoll_ctl(poller, operation, fd, &event);
}

/* Connects to the adb server and names the phone. The answer has not been read. */
static int dial(void)
{
	struct sockaddr_in address = loopback(adb_port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
		exit(1);
	ask(fd, phone);
	return fd;
}

static void prepare(void)
{
	if (spare >= 0)
		return;
	spare = dial();
	set_options(spare);
	watch(EPOLL_CTL_ADD, spare, &waiting);
}

static int is_okay(int fd) { return recv(fd, scratch, 4, 0) == 4 && memcmp(scratch, "OKAY", 4) == 0; }

/* Ends a connection. Its memory is not freed, because an event of this turn may name it. */
static void end(struct side *side)
{
	close(side->fd);
	close(side->peer->fd);
	side->fd = side->peer->fd = -1;
}

/* Moves bytes until one side is empty or the other one is full. */
static void pump(struct side *from)
{
	struct side *to = from->peer;
	while (from->fd >= 0) {
		while (from->begin < from->end) {
			ssize_t sent = send(to->fd, from->rest + from->begin, from->end - from->begin, MSG_NOSIGNAL);
			if (sent <= 0)
				return;
			from->begin += sent;
		}
		ssize_t count = recv(from->fd, scratch, SIZE, 0);
		if (count < 0 && errno == EAGAIN)
			return;
		if (count <= 0)
			return end(from);
		ssize_t sent = send(to->fd, scratch, count, MSG_NOSIGNAL);
		if (sent < 0)
			sent = 0;
		if (sent == count)
			continue;
		if (from->rest == NULL)
			from->rest = malloc(SIZE);
		memcpy(from->rest, scratch + sent, count - sent);
		from->begin = 0;
		from->end = count - sent;
	}
}

/* Opens a stream for a client. It waits for the phone alone, which is enough for one client at a time. */
static void serve(int client)
{
	int fd = spare, isNew = fd < 0 || !spare_is_ready;
	if (isNew)
		fd = dial();
	else
		spare = -1;
	spare_is_ready = spare >= 0 && spare_is_ready;
	fcntl(fd, F_SETFL, 0);
	if (isNew && !is_okay(fd))
		exit(1);
	ask(fd, target);
	if (!is_okay(fd)) {
		close(fd);
		close(client);
		return;
	}
	struct side *sides = calloc(2, sizeof *sides);
	sides[0] = (struct side){.fd = client, .peer = &sides[1]};
	sides[1] = (struct side){.fd = fd, .peer = &sides[0]};
	set_options(client);
	set_options(fd);
	watch(EPOLL_CTL_ADD, client, &sides[0]);
	watch(isNew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &sides[1]);
	pump(&sides[0]);
	prepare();
}

int main(int count, char **words)
{
	if (count != 4)
		return 2;
	adb_port = atoi(words[1]);
	snprintf(phone, sizeof phone, "host:transport:%s", words[2]);
	snprintf(target, sizeof target, "tcp:%s", words[3]);
	struct sockaddr_in address = loopback(0);
	socklen_t length = sizeof address;
	listening.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (bind(listening.fd, (struct sockaddr *)&address, length) != 0 || listen(listening.fd, 512) != 0)
		return 1;
	getsockname(listening.fd, (struct sockaddr *)&address, &length);
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	poller = epoll_create1(EPOLL_CLOEXEC);
	watch(EPOLL_CTL_ADD, listening.fd, &listening);
	while (1) {
		struct epoll_event events[64];
		int ready = epoll_wait(poller, events, 64, -1);
		for (int index = 0; index < ready; index++) {
			struct side *side = events[index].data.ptr;
			int client;
			if (side == &listening) {
				while ((client = accept(listening.fd, NULL, NULL)) >= 0)
					serve(client);
			} else if (side == &waiting) {
				spare_is_ready = spare >= 0 && (spare_is_ready || is_okay(spare));
			} else if (side->fd >= 0) {
				pump(side);
				if (side->fd >= 0)
					pump(side->peer);
			}
		}
	}
}
