package import Model
package import SystemIO

/// Opens streams to devices by UDID.
///
/// The dialer looks up the DeviceID at each dial, among the devices of the running usbmuxd. The stream is used
/// only if the same run of usbmuxd opened it. After a restart in between, the dial is retried or fails, and never reaches
/// another device.
package struct UsbmuxDialer: Dialer {
    /// The maximum number of attempts per dial.
    ///
    /// usbmuxd 1.1.1 may lose an app that sends and closes at once. If its own "ok" has not been forwarded yet, it
    /// closes the client's socket silently (connection_teardown in device.c). This was seen for up to 3 of 10 dials of
    /// such an app.
    private static let attempts = 4

    private let monitor: DeviceMonitor
    private let client: any UsbmuxClient

    init(monitor: DeviceMonitor, client: any UsbmuxClient) {
        self.monitor = monitor
        self.client = client
    }

    /// Opens a stream to a port of a device. Throws `DialError`.
    package func dial(_ route: Route) async throws -> Connection {
        guard case .usb(let route) = route else {
            throw DialError(.noRoute, "\(route) is not a USB route; dial it over the network")
        }
        guard route.port != 0 else {
            throw DialError(.failed, "port 0 is not a valid port; give the port that the app listens on")
        }
        var failure = UsbmuxError.closed(request: "Connect")
        var isLost = false
        for _ in 0..<Self.attempts {
            let handle = try await monitor.handle(of: route.udid)
            isLost = false
            do {
                let connection = try await client.connect(deviceID: handle.deviceID, port: route.port)
                if handle.session.owns(connection: connection.descriptor.number) {
                    return connection.checked(by: handle.linkChecker)
                }
                failure = .closed(request: "Connect")
            } catch UsbmuxError.result(.badDevice, let request) {
                // The device was just unplugged, or this is the 65,536th Connect. usbmuxd rejects that one because its
                // source port wraps to 0.
                failure = .result(.badDevice, request: request)
            } catch let error as UsbmuxError {
                // Nothing has been sent to the app yet, so a retry is safe.
                guard error == .closed(request: "Connect") else { throw await self.failure(error, at: route) }
                failure = error
                isLost = handle.session.isAlive
            }
        }
        if isLost {
            throw DialError(
                .failed,
                "port \(route.port) of phone \(route.udid) was closed right after it was opened; check the log of the app"
            )
        }
        throw await self.failure(failure, at: route)
    }

    package func plan(for route: Route) async -> ConnectPlan? {
        guard case .usb(let route) = route, route.port != 0, let handle = try? await monitor.handle(of: route.udid)
        else { return nil }
        var plan = client.plan(
            deviceID: handle.deviceID,
            route: route,
            session: handle.session,
            linkChecker: handle.linkChecker
        )
        plan?.reason = { failure in
            // `dial` tries again after every other result.
            guard case .rejected(let code) = failure, case let result = UsbmuxResult(code: code),
                result == .refused || result == .badCommand
            else { return nil }
            return await self.failure(.result(result, request: "Connect"), at: route)
        }
        return plan
    }

    /// Converts an error of usbmuxd to the error that tunnels and probes report.
    private func failure(_ error: UsbmuxError, at route: USBRoute) async -> DialError {
        let phone = "phone \(route.udid)"
        switch error {
        case .result(.refused, _), .result(.badCommand, _):
            // An unplugged device gives the same two results, and netmuxd returns only the second one.
            guard await monitor.isConnected(route.udid) else { return .absent(route.udid) }
            return DialError(
                .refused,
                "nothing listens on port \(route.port) of \(phone); start the app, or check the port"
            )
        case .result(.badDevice, _):
            return .absent(route.udid)
        case .timedOut:
            return .timedOut(route)
        case .absent:
            return DialError(.usbmuxdAbsent, "\(phone) cannot be reached: \(error)")
        case .closed:
            return DialError(
                .usbmuxdAbsent,
                "usbmuxd stopped while connecting to \(phone); try again when it is running"
            )
        case .tooManyConnections:
            return DialError(.limit, "\(phone) was not dialled: \(error)")
        case .badAddress, .permissionDenied, .result, .malformedMessage, .failed:
            return DialError(.failed, "\(phone) cannot be reached: \(error)")
        }
    }
}

extension DialError {
    static func timedOut(_ route: USBRoute) -> DialError {
        DialError(
            .timedOut,
            "phone \(route.udid) did not answer on port \(route.port) in time; unlock it, or unplug it and plug it in "
                + "again"
        )
    }

    static func absent(_ udid: UDID) -> DialError {
        DialError(
            .deviceAbsent,
            "phone \(udid) is not plugged in; connect it by cable, or see `patchbay devices` for those that are"
        )
    }
}
