/* The cable: libusb's transfers, their pacing, and the event loop.
 *
 * usbmuxd polls one descriptor of ours, an epoll set. Transfers complete only
 * inside libusb_handle_events_timeout, each at most once per call, so that
 * usbmuxd's main loop alternates between its clients and the phone as it does
 * with real hardware. */
#define _GNU_SOURCE
#include "fakeusb.h"

#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SLACK_NS 200000		/* timers are late; a cable may catch up this much */

/* One libusb transfer: our part, then the caller's. */
struct xfer {
	struct list link;
	enum { IDLE, PENDING, FINISHED } state;
	struct libusb_transfer pub;
};
#define XFER(member, ptr) ((struct xfer *)((char *)(ptr) - offsetof(struct xfer, member)))

static struct list finished = { &finished, &finished };	/* callbacks to run */
static int epoll_fd = -1;
static struct source wake = { NULL, -1 }, timer = { NULL, -1 };
static uint64_t alarm_ns;			/* when a cable becomes free */

/* Ask usbmuxd's poll to come back to us. The eventfd is edge triggered and
 * never read: each write is a fresh edge. */
static void wake_up(void)
{
	uint64_t one = 1;

	if (write(wake.fd, &one, sizeof one) < 0)
		fu_log("wake: %m");
}

static void finish(struct xfer *x, enum libusb_transfer_status status, int actual)
{
	x->pub.status = status;
	x->pub.actual_length = actual;
	x->state = FINISHED;
	if (list_empty(&finished))
		wake_up();
	list_append(&finished, &x->link);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* True while the cable still carries earlier data; we look again when it is
 * free. */
static bool busy(const libusb_device *dev, const struct pipe *pipe)
{
	if (!dev->opts.rate || pipe->free_ns <= now_ns())
		return false;
	if (pipe->free_ns < alarm_ns)
		alarm_ns = pipe->free_ns;
	return true;
}

static void carry(const libusb_device *dev, struct pipe *pipe, size_t bytes)
{
	uint64_t now = now_ns();

	if (!dev->opts.rate)
		return;
	if (pipe->free_ns + SLACK_NS < now)	/* idle time earns no credit */
		pipe->free_ns = now - SLACK_NS;
	pipe->free_ns += bytes * 1000000 / dev->opts.rate;
}

/* Carry what the host has sent, then what the phone has for the host. */
static void pump(libusb_device *dev)
{
	struct xfer *x;
	size_t n;

	while (dev->phone && !list_empty(&dev->out.pending) && !busy(dev, &dev->out)) {
		x = XFER(link, dev->out.pending.next);
		n = (size_t)x->pub.length;
		if (n > 0)
			phone_output(dev->phone, x->pub.buffer, n);
		carry(dev, &dev->out, n);
		finish(x, LIBUSB_TRANSFER_COMPLETED, (int)n);
	}
	while (dev->phone && !list_empty(&dev->in.pending) && !busy(dev, &dev->in)) {
		x = XFER(link, dev->in.pending.next);
		n = phone_input(dev->phone, x->pub.buffer, (size_t)x->pub.length);
		if (n == 0)
			break;
		carry(dev, &dev->in, n);
		finish(x, LIBUSB_TRANSFER_COMPLETED, (int)n);
	}
}

static void pump_all(void)
{
	for (libusb_device *d = fu_devices; d; d = d->next)
		pump(d);
}

void cable_init(libusb_device *dev)
{
	list_init(&dev->in.pending);
	list_init(&dev->out.pending);
}

void cable_cut(libusb_device *dev)
{
	while (!list_empty(&dev->in.pending))
		finish(XFER(link, dev->in.pending.next), LIBUSB_TRANSFER_NO_DEVICE, 0);
	while (!list_empty(&dev->out.pending))
		finish(XFER(link, dev->out.pending.next), LIBUSB_TRANSFER_NO_DEVICE, 0);
}

/* ---- events ---- */

int fu_watch(struct source *src, uint32_t epoll_events)
{
	struct epoll_event ev = { .events = epoll_events, .data.ptr = src };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, src->fd, &ev);
}

EXPORT int libusb_init(libusb_context **ctx UNUSED)
{
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (fu_watch(&wake, EPOLLIN | EPOLLET) < 0 || fu_watch(&timer, EPOLLIN | EPOLLET) < 0)
		return LIBUSB_ERROR_OTHER;
	return control_init();
}

static void run_sources(int timeout_ms)
{
	struct epoll_event ev[64];
	int n = epoll_wait(epoll_fd, ev, 64, timeout_ms);

	for (int i = 0; i < n; i++)
		if (((struct source *)ev[i].data.ptr)->ready)
			((struct source *)ev[i].data.ptr)->ready(ev[i].data.ptr, ev[i].events);
	if (n == 64)
		wake_up();
}

EXPORT int libusb_handle_events_timeout(libusb_context *ctx UNUSED, struct timeval *tv)
{
	int timeout_ms = (int)(tv->tv_sec * 1000 + (tv->tv_usec + 999) / 1000);
	struct itimerspec alarm = { 0 };
	struct list batch;
	struct xfer *x;

	list_init(&batch);
	alarm_ns = UINT64_MAX;
	run_sources(list_empty(&finished) ? timeout_ms : 0);
	pump_all();

	/* Run what has finished by now; what the callbacks submit waits. */
	while (!list_empty(&finished))
		list_append(&batch, finished.next);
	while (!list_empty(&batch)) {
		x = XFER(link, batch.next);
		list_remove(&x->link);
		x->state = IDLE;
		if (x->pub.callback)
			x->pub.callback(&x->pub);
	}
	pump_all();
	if (alarm_ns != UINT64_MAX) {
		alarm.it_value.tv_sec = (time_t)(alarm_ns / 1000000000u);
		alarm.it_value.tv_nsec = (long)(alarm_ns % 1000000000u);
		timerfd_settime(timer.fd, TFD_TIMER_ABSTIME, &alarm, NULL);
	}
	if (!list_empty(&finished))
		wake_up();
	phone_reap();
	return 0;
}

EXPORT const struct libusb_pollfd **libusb_get_pollfds(libusb_context *ctx UNUSED)
{
	static struct libusb_pollfd pfd;
	const struct libusb_pollfd **list = calloc(2, sizeof *list);

	pfd = (struct libusb_pollfd){ epoll_fd, POLLIN };
	list[0] = &pfd;
	return list;		/* usbmuxd frees it with free() */
}

/* ---- transfers ---- */

EXPORT struct libusb_transfer *libusb_alloc_transfer(int iso_packets UNUSED)
{
	struct xfer *x = calloc(1, sizeof *x);

	list_init(&x->link);
	return &x->pub;
}

EXPORT void libusb_free_transfer(struct libusb_transfer *t)
{
	struct xfer *x = XFER(pub, t);

	list_remove(&x->link);
	if (t->flags & LIBUSB_TRANSFER_FREE_BUFFER)
		free(t->buffer);
	free(x);
}

/* Only string descriptors are answered; the rest stalls, as a phone does. */
static void control_request(libusb_device *dev, struct xfer *x)
{
	struct libusb_control_setup *setup = (void *)x->pub.buffer;
	uint8_t *reply = x->pub.buffer + LIBUSB_CONTROL_SETUP_SIZE;
	int value = libusb_le16_to_cpu(setup->wValue), n = 2;
	const char *text = (const char *[]){ NULL, "Apple Inc.", "iPhone", dev->serial }[value & 3];

	if (setup->bmRequestType != LIBUSB_ENDPOINT_IN || setup->bRequest != LIBUSB_REQUEST_GET_DESCRIPTOR
	    || value >> 8 != LIBUSB_DT_STRING || (value & 0xff) > STR_SERIAL) {
		finish(x, LIBUSB_TRANSFER_STALL, 0);
		return;
	}
	if (!text) {		/* the language list: US English */
		reply[n++] = 0x09;
		reply[n++] = 0x04;
	}
	for (; text && *text; text++) {
		reply[n++] = (uint8_t)*text;
		reply[n++] = 0;
	}
	reply[0] = (uint8_t)n;
	reply[1] = LIBUSB_DT_STRING;
	finish(x, LIBUSB_TRANSFER_COMPLETED, n);
}

EXPORT int libusb_submit_transfer(struct libusb_transfer *t)
{
	struct xfer *x = XFER(pub, t);
	libusb_device *dev = t->dev_handle->dev;

	if (x->state != IDLE)
		return LIBUSB_ERROR_BUSY;
	if (dev->gone) {
		/* Real libusb refuses here, and usbmuxd 1.1.1 then waits for ever
		 * for the transfer to end (libimobiledevice/usbmuxd#114). */
		if (getenv("FAKEUSB_HARD_UNPLUG"))
			return LIBUSB_ERROR_NO_DEVICE;
		finish(x, LIBUSB_TRANSFER_NO_DEVICE, 0);
	} else if (t->type == LIBUSB_TRANSFER_TYPE_CONTROL) {
		control_request(dev, x);
	} else if (t->endpoint == EP_IN) {
		x->state = PENDING;
		list_append(&dev->in.pending, &x->link);
	} else if (t->endpoint == EP_OUT) {
		x->state = PENDING;
		list_append(&dev->out.pending, &x->link);
		wake_up();
	} else {
		return LIBUSB_ERROR_NOT_FOUND;
	}
	return 0;
}

EXPORT int libusb_cancel_transfer(struct libusb_transfer *t)
{
	if (XFER(pub, t)->state != PENDING)
		return LIBUSB_ERROR_NOT_FOUND;
	finish(XFER(pub, t), LIBUSB_TRANSFER_CANCELLED, 0);
	return 0;
}
