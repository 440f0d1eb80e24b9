package import Model
package import SystemIO

/// Plans streams to devices by UDID.
///
/// The planner looks up the DeviceID among the devices of the running usbmuxd. A stream is used only if the same run of
/// usbmuxd opened it. After a restart in between, the connect is retried or fails, and never reaches another device.
package struct UsbmuxPlanner: ConnectPlanner {
    /// The maximum number of attempts for one stream.
    ///
    /// usbmuxd 1.1.1 may lose an app that sends and closes at once. If its own "ok" has not been forwarded yet, it
    /// closes the client's socket silently (connection_teardown in device.c). This was seen for up to 3 of 10 dials of
    /// such an app.
    private static let attempts = 4

    let monitor: DeviceMonitor
    let client: any UsbmuxClient

    package func plan(for route: Route) async throws(DialError) -> ConnectPlan {
        guard case .usb(let route) = route else {
            throw DialError(.noRoute, "\(route) is not a USB route; dial it over the network")
        }
        guard case .port(let port) = route.socket else {
            throw DialError(.failed, "\(route.udid) is an iPhone, which has no abstract sockets; give a port")
        }
        guard port != 0 else {
            throw DialError(.failed, "port 0 is not a valid port; give the port that the app listens on")
        }
        let handle = try await monitor.handle(of: route.udid)
        return ConnectPlan(
            route: .usb(route),
            method: client.method(for: route, to: handle),
            halfClose: .destroys,
            linkCheck: handle.linkCheck,
            timeout: client.connectTimeout,
            limitKey: ConnectLimitKey(server: handle.session, device: handle.deviceID),
            acquirePermit: { [connectionLimit = client.connectionLimit] in connectionLimit.permit(route.udid) },
            listenerCheck: .connection { true }
        ) { failure, attempt async throws(DialError) in
            // Nothing has been sent to the app yet, so a retry is safe. The device may have been unplugged. usbmuxd also
            // rejects the 65,536th Connect, because its source port wraps to 0.
            if failure.isRetried, attempt < Self.attempts { return try await plan(for: .usb(route)) }
            throw await reason(failure, at: route, in: handle.session)
        }
    }

    /// Converts a failure to the error that tunnels and probes report.
    private func reason(
        _ failure: ConnectPlan.AttemptFailure,
        at route: USBRoute,
        in session: UsbmuxdInstance
    ) async -> DialError {
        let phone = "phone \(route.udid)"
        switch failure {
        case .rejected(UsbmuxResult.refused.code), .rejected(UsbmuxResult.badCommand.code):
            // An unplugged device gives the same two results, and netmuxd returns only the second one.
            guard await monitor.isConnected(route.udid) else { return .absent(route.udid) }
            return DialError(
                .refused,
                "nothing listens on port \(route.port) of \(phone); start the app, or check the port"
            )
        case .rejected(UsbmuxResult.badDevice.code): return .absent(route.udid)
        case .refused(let reason):
            return DialError(.failed, "\(phone) cannot be reached: \(reason)")
        case .rejected(let code):
            let error = UsbmuxError.result(UsbmuxResult(code: code), request: "Connect")
            return DialError(.failed, "\(phone) cannot be reached: \(error)")
        case .timedOut:
            return DialError(
                .timedOut,
                "\(phone) did not answer on port \(route.port) in time; unlock it, or unplug it and plug it in again"
            )
        case .noPermit, .forbidden:
            return DialError(
                .limit,
                "\(phone) was not dialed: \(client.connectionLimit.limit) streams through usbmuxd are open, which is the "
                    + "limit; close some and try again"
            )
        case .closed where session.isAlive:
            return DialError(
                .failed,
                "port \(route.port) of \(phone) was closed right after it was opened; check the log of the app"
            )
        case .closed:
            return DialError(
                .usbmuxdAbsent,
                "usbmuxd stopped while connecting to \(phone); try again when it is running"
            )
        case .system(let code):
            let error = monitor.address.usbmuxdError(code)
            return DialError(error.isDisconnect ? .usbmuxdAbsent : .failed, "\(phone) cannot be reached: \(error)")
        }
    }
}

extension ConnectPlan.AttemptFailure {
    fileprivate var isRetried: Bool { self == .closed || self == .rejected(code: UsbmuxResult.badDevice.code) }
}

extension DialError {
    static func absent(_ udid: UDID) -> DialError {
        DialError(
            .deviceAbsent,
            "phone \(udid) is not plugged in; connect it by cable, or see `patchbay devices` for those that are"
        )
    }
}
