/* fakeusb: a stand-in for libusb-1.0 that shows fake iPhones to usbmuxd.
 * Internal interfaces between its parts:
 *   usbapi.c   the libusb calls about devices, and who is plugged in
 *   cable.c    the libusb calls about transfers, and the event loop
 *   phone.c    the phone's side of the usbmux protocol, bridged to sockets
 *   control.c  attach and detach, driven by files in a control directory
 *   redirect.c usbmuxd's built-in paths, moved to that directory
 * Everything runs on usbmuxd's own thread, inside libusb_handle_events. */
#ifndef FAKEUSB_H
#define FAKEUSB_H

#include <libusb-1.0/libusb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define UNUSED __attribute__((unused))
#define fu_log(fmt, ...) \
	((void)(getenv("FAKEUSB_DEBUG") && fprintf(stderr, "fakeusb: " fmt "\n", ##__VA_ARGS__)))

/* What a control file says about one phone. */
struct phone_opts {
	uint16_t pid;		/* USB product id */
	struct in_addr addr;	/* where this phone's apps listen ... */
	int offset;		/* ... at device port + offset */
	uint16_t lockdown;	/* port on 127.0.0.1 that plays lockdownd, 0 for none */
	uint32_t packet;	/* largest mux packet sent to the host, bytes */
	uint32_t rate;		/* the cable's speed each way in kB/s, 0 for no limit */
	enum { FAULT_NONE, FAULT_NOVERSION, FAULT_DROPSYN, FAULT_MUTE } fault;
};

/* A file descriptor watched by the event loop. */
struct source {
	void (*ready)(struct source *src, uint32_t epoll_events);
	int fd;
};

/* Doubly linked ring; an element on its own is in no list. */
struct list { struct list *prev, *next; };

static inline void list_init(struct list *l) { l->prev = l->next = l; }
static inline bool list_empty(const struct list *l) { return l->next == l; }

static inline void list_remove(struct list *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	list_init(l);
}

static inline void list_append(struct list *head, struct list *l)
{
	list_remove(l);
	l->prev = head->prev;
	l->next = head;
	l->prev->next = head->prev = l;
}

/* One direction of the cable. */
struct pipe {
	struct list pending;	/* requests waiting */
	uint64_t free_ns;	/* when the cable has carried what it took */
};

struct libusb_device {
	struct libusb_device *next;
	int refs;
	bool gone;
	uint8_t bus, address;
	int configuration;
	char udid[64];			/* as the control file is named */
	char serial[64];		/* as the USB string says it: no hyphen */
	struct phone_opts opts;
	struct phone *phone;		/* exists while the device is open */
	struct pipe in, out;		/* phone to host, host to phone */
};

#define EXPORT __attribute__((visibility("default")))
#define EP_OUT 0x04
#define EP_IN 0x85
enum { STR_MANUFACTURER = 1, STR_PRODUCT, STR_SERIAL };	/* USB string indexes */

struct libusb_device_handle { libusb_device *dev; };

/* usbapi.c */
extern libusb_device *fu_devices;		/* attached now */
libusb_device *fu_find(const char *udid);
void fu_attach(const char *udid, const struct phone_opts *opts);
void fu_detach(libusb_device *dev);

/* cable.c */
int fu_watch(struct source *src, uint32_t epoll_events);
void cable_init(libusb_device *dev);
void cable_cut(libusb_device *dev);		/* what was under way fails */

/* phone.c */
struct phone *phone_new(libusb_device *dev);
void phone_free(struct phone *ph);		/* unplugged or closed */
void phone_output(struct phone *ph, const uint8_t *buf, size_t len);
size_t phone_input(struct phone *ph, uint8_t *buf, size_t len);
void phone_reap(void);				/* free closed connections */

/* control.c */
int control_init(void);

#endif
