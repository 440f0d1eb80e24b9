/* libusbmuxd 2.0, the selectable second client of Devices. */
#include <usbmuxd.h>
