/* The libusb-1.0 calls that usbmuxd makes about devices, answered without any USB. */
#define _GNU_SOURCE
#include "fakeusb.h"

#include <string.h>

libusb_device *fu_devices;
static unsigned next_address;
static struct {
	libusb_hotplug_callback_fn fn;
	void *user_data;
} hotplug;

/* ---- device life ---- */

static void put_device(libusb_device *dev)
{
	if (--dev->refs == 0)
		free(dev);
}

libusb_device *fu_find(const char *udid)
{
	libusb_device *d = fu_devices;

	while (d && strcmp(d->udid, udid) != 0)
		d = d->next;
	return d;
}

void fu_attach(const char *udid, const struct phone_opts *opts)
{
	libusb_device *dev = calloc(1, sizeof *dev), **end = &fu_devices;
	char *to = dev->serial;

	snprintf(dev->udid, sizeof dev->udid, "%s", udid);
	for (const char *from = dev->udid; *from; from++)
		if (*from != '-')
			*to++ = *from;
	dev->opts = *opts;
	dev->refs = 1;
	dev->configuration = 1;
	cable_init(dev);
	dev->bus = (uint8_t)(1 + next_address / 127 % 255);
	dev->address = (uint8_t)(1 + next_address++ % 127);
	while (*end)
		end = &(*end)->next;
	*end = dev;
	fu_log("attach %s at %d-%d", udid, dev->bus, dev->address);
	if (hotplug.fn)
		hotplug.fn(NULL, dev, LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED, hotplug.user_data);
}

void fu_detach(libusb_device *dev)
{
	libusb_device **link = &fu_devices;

	fu_log("detach %s", dev->udid);
	while (*link != dev)
		link = &(*link)->next;
	*link = dev->next;
	dev->gone = true;
	cable_cut(dev);
	if (dev->phone)
		phone_free(dev->phone);
	dev->phone = NULL;
	if (hotplug.fn)
		hotplug.fn(NULL, dev, LIBUSB_HOTPLUG_EVENT_DEVICE_LEFT, hotplug.user_data);
	put_device(dev);
}

EXPORT int libusb_hotplug_register_callback(libusb_context *ctx, int events UNUSED, int flags,
	int vendor UNUSED, int product UNUSED, int dev_class UNUSED,
	libusb_hotplug_callback_fn fn, void *user_data, libusb_hotplug_callback_handle *handle)
{
	hotplug.fn = fn;
	hotplug.user_data = user_data;
	if (handle)
		*handle = 1;
	if (flags & LIBUSB_HOTPLUG_ENUMERATE)
		for (libusb_device *d = fu_devices; d; d = d->next)
			fn(ctx, d, LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED, user_data);
	return 0;
}

/* ---- devices and descriptors ---- */

EXPORT int libusb_get_device_descriptor(libusb_device *dev, struct libusb_device_descriptor *desc)
{
	*desc = (struct libusb_device_descriptor){
		.bLength = LIBUSB_DT_DEVICE_SIZE, .bDescriptorType = LIBUSB_DT_DEVICE,
		.bcdUSB = 0x0200, .bMaxPacketSize0 = 64,
		.idVendor = 0x05ac, .idProduct = dev->opts.pid, .bcdDevice = 0x1404,
		.iManufacturer = STR_MANUFACTURER, .iProduct = STR_PRODUCT,
		.iSerialNumber = STR_SERIAL, .bNumConfigurations = 4,
	};
	return 0;
}

/* Configurations 1 and 2 have only the picture-transfer interface, 3 and 4
 * add the usbmux one (class 255, subclass 254, protocol 2). */
EXPORT int libusb_get_config_descriptor_by_value(libusb_device *dev, uint8_t value,
	struct libusb_config_descriptor **config)
{
	static const struct libusb_endpoint_descriptor mux_ep[2] = {
		{ 7, LIBUSB_DT_ENDPOINT, EP_OUT, LIBUSB_TRANSFER_TYPE_BULK, 512, 0, 0, 0, NULL, 0 },
		{ 7, LIBUSB_DT_ENDPOINT, EP_IN, LIBUSB_TRANSFER_TYPE_BULK, 512, 0, 0, 0, NULL, 0 },
	};
	static const struct libusb_interface_descriptor ptp =
		{ 9, LIBUSB_DT_INTERFACE, 0, 0, 0, 6, 1, 1, 0, NULL, NULL, 0 };
	static const struct libusb_interface_descriptor mux =
		{ 9, LIBUSB_DT_INTERFACE, 1, 0, 2, 255, 254, 2, 0, mux_ep, NULL, 0 };
	static const struct libusb_interface interfaces[2] = { { &ptp, 1 }, { &mux, 1 } };

	if (value < 1 || value > 4)
		return LIBUSB_ERROR_NOT_FOUND;
	if (dev->gone)
		return LIBUSB_ERROR_NO_DEVICE;
	*config = calloc(1, sizeof **config);
	**config = (struct libusb_config_descriptor){
		.bLength = 9, .bDescriptorType = 2, .bConfigurationValue = value,
		.bNumInterfaces = value >= 3 ? 2 : 1, .interface = interfaces };
	return 0;
}

EXPORT int libusb_get_active_config_descriptor(libusb_device *dev,
	struct libusb_config_descriptor **config)
{
	return libusb_get_config_descriptor_by_value(dev, (uint8_t)dev->configuration, config);
}

EXPORT int libusb_open(libusb_device *dev, libusb_device_handle **handle)
{
	if (dev->gone)
		return LIBUSB_ERROR_NO_DEVICE;
	*handle = calloc(1, sizeof **handle);
	(*handle)->dev = dev;
	dev->refs++;
	if (!dev->phone)
		dev->phone = phone_new(dev);
	return 0;
}

EXPORT void libusb_close(libusb_device_handle *handle)
{
	if (handle->dev->phone)
		phone_free(handle->dev->phone);
	handle->dev->phone = NULL;
	put_device(handle->dev);
	free(handle);
}

/* Calls with little or nothing to do. */
#define SIMPLE(type, name, result, ...) EXPORT type name(__VA_ARGS__) { return result; }
SIMPLE(int, libusb_get_configuration, (*value = h->dev->configuration, 0), libusb_device_handle *h, int *value)
SIMPLE(int, libusb_set_configuration, (h->dev->configuration = value, 0), libusb_device_handle *h, int value)
SIMPLE(int, libusb_claim_interface, h->dev->gone ? LIBUSB_ERROR_NO_DEVICE : 0,
	libusb_device_handle *h, int interface UNUSED)
SIMPLE(int, libusb_release_interface, 0, libusb_device_handle *h UNUSED, int interface UNUSED)
SIMPLE(int, libusb_kernel_driver_active, 0, libusb_device_handle *h UNUSED, int interface UNUSED)
SIMPLE(int, libusb_detach_kernel_driver, 0, libusb_device_handle *h UNUSED, int interface UNUSED)
SIMPLE(int, libusb_set_option, 0, libusb_context *ctx UNUSED, enum libusb_option option UNUSED, ...)
SIMPLE(int, libusb_get_next_timeout, 0, libusb_context *ctx UNUSED, struct timeval *tv UNUSED)
SIMPLE(int, libusb_get_device_speed, LIBUSB_SPEED_HIGH, libusb_device *dev UNUSED)
SIMPLE(int, libusb_get_max_packet_size, 512, libusb_device *dev UNUSED, unsigned char ep UNUSED)
SIMPLE(int, libusb_has_capability, 1, uint32_t capability UNUSED)
SIMPLE(uint8_t, libusb_get_bus_number, dev->bus, libusb_device *dev)
SIMPLE(uint8_t, libusb_get_device_address, dev->address, libusb_device *dev)
SIMPLE(const char *, libusb_error_name, code ? "LIBUSB_ERROR" : "LIBUSB_SUCCESS", int code)
/* usbmuxd asks for a device list only where there is no hotplug. */
SIMPLE(ssize_t, libusb_get_device_list, LIBUSB_ERROR_NOT_SUPPORTED, libusb_context *ctx UNUSED,
	libusb_device ***list UNUSED)
static const struct libusb_version version = { 1, 0, 26, 0, "-fakeusb", "" };
SIMPLE(const struct libusb_version *, libusb_get_version, &version, void)
EXPORT void libusb_exit(libusb_context *ctx UNUSED) {}	/* the process ends */
EXPORT void libusb_free_device_list(libusb_device **list UNUSED, int unref UNUSED) {}
EXPORT void libusb_free_config_descriptor(struct libusb_config_descriptor *c) { free(c); }
EXPORT void libusb_hotplug_deregister_callback(libusb_context *ctx UNUSED,
	libusb_hotplug_callback_handle handle UNUSED) { hotplug.fn = NULL; }
