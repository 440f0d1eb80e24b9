package import Model

/// What `DeviceMonitor` tells, in order.
package enum DeviceEvent: Hashable, Sendable {
    /// A phone is there: plugged in, or said again after usbmuxd came back.
    case attached(Device)
    case detached(Device)
    /// usbmuxd ended: no phone can be reached now, and none is known to be unplugged.
    case usbmuxdLost
    /// usbmuxd is there and has named every phone that it has; what it did not name is gone.
    case usbmuxdReady
}
