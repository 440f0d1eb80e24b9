package import Model
package import SystemIO

/// Plans streams to phones: to iPhones through usbmuxd, and to Android phones through adb.
package struct DevicePlanner: ConnectPlanner {
    private let usbmuxd: any ConnectPlanner
    private let adb: (any ConnectPlanner)?

    /// - Parameters:
    ///   - usbmuxd: Plans streams to iPhones.
    ///   - adb: Plans streams to Android phones; nil if adb is off.
    package init(usbmuxd: any ConnectPlanner, adb: (any ConnectPlanner)?) {
        (self.usbmuxd, self.adb) = (usbmuxd, adb)
    }

    package func plan(for route: Route) async throws(DialError) -> ConnectPlan {
        guard case .usb(let usb) = route, usb.udid.platform == .android else {
            return try await usbmuxd.plan(for: route)
        }
        guard let adb else { throw .adbOff }
        return try await adb.plan(for: route)
    }
}

extension DialError {
    /// The error for an Android phone while adb is off.
    package static let adbOff = DialError(
        .deviceAbsent,
        "Android phones are turned off; set devices.adb = \"auto\" in the configuration"
    )
}
