package import Model
package import SystemIO

/// Opens streams to phones by their UDID.
///
/// The DeviceID that usbmuxd wants is looked up at each dial, among the phones of the usbmuxd that runs now, and the
/// stream is handed over only if that usbmuxd was still the one that answered. A restart in between makes the dial begin
/// again, or fail; it never gives the stream of another phone.
package struct UsbmuxDialer: Dialer {
    /// An app that speaks and closes at once may be lost by usbmuxd 1.1.1: while its own "ok" is not passed on yet, it closes
    /// our socket without a word (connection_teardown in device.c). Seen for up to 3 of 10 dials of such an app.
    private static let attempts = 4

    private let source: DeviceMonitor
    private let client: any UsbmuxClient

    init(source: DeviceMonitor, client: any UsbmuxClient) {
        self.source = source
        self.client = client
    }

    package func dial(_ route: Route) async throws -> Connection {
        guard case .usb(let route) = route else {
            throw DialError(.noRoute, "\(route) does not lead through a cable; dial it through the network")
        }
        guard route.port != 0 else {
            throw DialError(.failed, "port 0 cannot be reached by anybody; give the port that the app listens on")
        }
        var failure = UsbmuxError.closed(request: "Connect")
        var isLost = false
        for _ in 0..<Self.attempts {
            let handle = try await source.handle(of: route.udid)
            isLost = false
            do {
                let carrier = try await client.connect(deviceID: handle.deviceID, port: route.port)
                if handle.epoch.vouches(for: carrier.descriptor.number) { return carrier.witnessed(by: handle.witness) }
                failure = .closed(request: "Connect")
            } catch UsbmuxError.result(.badDevice, let request) {
                // Unplugged this moment, or the 65,536th Connect, which usbmuxd refuses for no reason: its source port
                // comes round to 0.
                failure = .result(.badDevice, request: request)
            } catch let error as UsbmuxError {
                // Nothing has been sent to the app yet, so that it may be asked again.
                guard error == .closed(request: "Connect") else { throw await self.failure(error, at: route) }
                failure = error
                isLost = handle.epoch.isAlive
            }
        }
        if isLost {
            throw DialError(
                .failed,
                "port \(route.port) of phone \(route.udid) was closed as soon as it was open; see what the app there says"
            )
        }
        throw await self.failure(failure, at: route)
    }

    /// The one place where what usbmuxd said becomes what tunnels and probes say.
    private func failure(_ error: UsbmuxError, at route: USBRoute) async -> DialError {
        let phone = "phone \(route.udid)"
        switch error {
        case .result(.refused, _), .result(.badCommand, _):
            // Both are also what a phone that was pulled meanwhile leaves behind, netmuxd's only word is the second one.
            guard await source.shows(route.udid) else { return .absent(route.udid) }
            return DialError(
                .refused,
                "nothing listens on port \(route.port) of \(phone); start the app, or check the port"
            )
        case .result(.badDevice, _):
            return .absent(route.udid)
        case .timedOut:
            return DialError(
                .timedOut,
                "\(phone) did not answer on port \(route.port) in time; unlock it, or unplug it and plug it in again"
            )
        case .absent:
            return DialError(.usbmuxdAbsent, "\(phone) cannot be reached: \(error)")
        case .closed:
            return DialError(
                .usbmuxdAbsent,
                "usbmuxd ended while \(phone) was being reached; try again when it is back"
            )
        case .limit:
            return DialError(.limit, "\(phone) was not dialled: \(error)")
        case .badAddress, .denied, .result, .garbled, .failed:
            return DialError(.failed, "\(phone) cannot be reached: \(error)")
        }
    }
}

extension DialError {
    static func absent(_ udid: UDID) -> DialError {
        DialError(
            .deviceAbsent,
            "phone \(udid) is not plugged in; connect it by cable, or see `patchbay devices` for those that are"
        )
    }
}
