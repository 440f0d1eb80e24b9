package import Model
package import SystemIO

/// A client that speaks usbmuxd's protocol itself, with one connection per request.
///
/// Every request has a timeout. At most 4 requests wait for usbmuxd at a time, because its accept queue holds 5. The
/// connector makes the Connect requests, with a limit of its own.
package final class NativeUsbmuxClient: UsbmuxClient {
    /// The standard limit of open streams through usbmuxd, so that Patchbay cannot exhaust its descriptors.
    ///
    /// usbmuxd exits when it runs out of descriptors, at about 1,019 clients with the usual limit of 1,024. The standard
    /// limit is half of that number, because usbmuxd may have other clients. Patchbay's own Listen and list sockets (at
    /// most 6) are not counted.
    package static let streamLimit = 512

    private static let requestsInFlight = 4

    package let connectionLimit: FairLimiter<UDID>
    package let connectTimeout: Duration
    private let address: ServerAddress
    private let replyTimeout: Duration
    private let semaphore = AsyncSemaphore(permits: requestsInFlight)

    /// - Parameters:
    ///   - address: The address of usbmuxd.
    ///   - connectionLimit: The connection limit, shared by all clients of the same usbmuxd.
    ///   - connectTimeout: The maximum time for a Connect, including the wait for the connection limit.
    ///   - replyTimeout: The maximum time for any other request.
    package init(
        address: ServerAddress,
        connectionLimit: FairLimiter<UDID> = FairLimiter(limit: NativeUsbmuxClient.streamLimit),
        connectTimeout: Duration = .seconds(10),
        replyTimeout: Duration = .seconds(5)
    ) {
        self.address = address
        self.connectionLimit = connectionLimit
        self.connectTimeout = connectTimeout
        self.replyTimeout = replyTimeout
    }

    package func listDevices() async throws -> [UsbmuxDeviceRecord] {
        guard case .devices(let devices) = try await request(.listDevices) else {
            throw UsbmuxError.malformedMessage("an answer to ListDevices without a list")
        }
        return devices
    }

    /// Returns whether usbmuxd has the record of a pairing with a phone; nil if it does not tell.
    func hasPairRecord(of udid: UDID) async -> Bool? {
        do {
            return try await request(.readPairRecord(of: udid)) == .pairRecord ? true : nil
        } catch UsbmuxError.result(.badDevice, _) {
            // usbmuxd answers ENOENT, which is the number of this result.
            return false
        } catch { return nil }
    }

    package func method(for route: USBRoute, to handle: DeviceMonitor.Handle) -> ConnectPlan.Method {
        let handshake = ConnectPlan.Handshake(
            requests: [UsbmuxRequest.connect(deviceID: handle.deviceID, port: route.port).message.encoded],
            evaluate: handle.session.evaluate,
            verify: { handle.session.owns(connection: $0) }
        )
        return .socket(handle.session.address, handshake)
    }

    /// Forwards a property list written by another client and returns usbmuxd's reply unchanged, including a rejection.
    ///
    /// For requests that usbmuxd itself answers with exactly one message. `request` names the request in errors.
    ///
    /// - Throws: `UsbmuxError` if there is no reply; `CancellationError`.
    package func forward(_ propertyList: [UInt8], for request: String) async throws -> UsbmuxMessage.Body {
        let message = UsbmuxMessage(tag: UsbmuxConnection.tag, body: .propertyList(propertyList))
        return try await exchange(request) { try await $0.exchange(message, for: request).body }
    }

    /// Sends a request that usbmuxd answers without the device.
    private func request(_ request: UsbmuxRequest) async throws -> UsbmuxReply {
        try await exchange(request.name) { try await $0.request(request) }
    }

    private func exchange<Reply: Sendable>(
        _ request: String,
        _ body: @escaping @Sendable (inout UsbmuxConnection) async throws -> Reply
    ) async throws -> Reply {
        try await withTimeout(replyTimeout, request: request) { [self] in
            let permit = try await semaphore.acquire()
            defer { permit.release() }
            let socket = try await address.connectToUsbmuxd()
            var usbmuxd = UsbmuxConnection(over: socket.number)
            return try await body(&usbmuxd)
        }
    }
}

/// Limits the duration of a request. usbmuxd has no timeouts of its own and can hang (libimobiledevice/usbmuxd#114), so
/// every request to it has one here.
///
/// - Throws: Errors of `body`; `UsbmuxError.timedOut` with the request's name; `CancellationError`.
func withTimeout<Value: Sendable>(
    _ limit: Duration,
    request: String,
    _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    guard let value = try await withTimeout(limit, clock: PollerClock(), body) else {
        throw UsbmuxError.timedOut(request: request, limit: limit)
    }
    return value
}
