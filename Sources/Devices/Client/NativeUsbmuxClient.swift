package import Model
import Synchronization
package import SystemIO

/// A client that speaks usbmuxd's protocol itself, with one connection per request.
///
/// Every request has a timeout. At most 4 requests wait for usbmuxd at a time, because its accept queue holds 5.
///
/// A Connect also waits for the device, which may never answer. After `permitHoldTime` it releases its permit to the
/// next request. At most 4 Connects wait for one device, so a silent device delays only connections to itself.
package final class NativeUsbmuxClient: UsbmuxClient {
    private static let requestsInFlight = 4
    private static let connectsPerDevice = 4
    private static let permitHoldTime = Duration.milliseconds(50)

    private let address: UsbmuxAddress
    private let connectionLimit: UsbmuxConnectionLimiter
    private let clock: any Clock<Duration>
    private let connectTimeout: Duration
    private let replyTimeout: Duration
    private let semaphore = AsyncSemaphore(permits: requestsInFlight)
    private let deviceLimiter = PerDeviceLimiter(permits: connectsPerDevice)

    /// - Parameters:
    ///   - address: The address of usbmuxd.
    ///   - connectionLimit: The connection limit, shared by all clients of the same usbmuxd.
    ///   - clock: The clock for all timeouts.
    ///   - connectTimeout: The maximum time to wait for the connection limit, and then for a Connect including its
    ///     queueing time.
    ///   - replyTimeout: The maximum time for any other request.
    package init(
        address: UsbmuxAddress,
        connectionLimit: UsbmuxConnectionLimiter = UsbmuxConnectionLimiter(),
        clock: any Clock<Duration> = PollerClock(),
        connectTimeout: Duration = .seconds(10),
        replyTimeout: Duration = .seconds(5)
    ) {
        self.address = address
        self.connectionLimit = connectionLimit
        self.clock = clock
        self.connectTimeout = connectTimeout
        self.replyTimeout = replyTimeout
    }

    package func listDevices() async throws -> [UsbmuxDeviceRecord] {
        guard case .devices(let devices) = try await request(.listDevices) else {
            throw UsbmuxError.malformedMessage("an answer to ListDevices without a list")
        }
        return devices
    }

    package func readBUID() async throws -> String {
        guard case .buid(let buid) = try await request(.readBUID) else {
            throw UsbmuxError.malformedMessage("an answer to ReadBUID without a BUID")
        }
        return buid
    }

    package func connect(deviceID: UInt32, port: UInt16) async throws -> Connection {
        let streamPermit = try await connectionLimit.acquire(within: connectTimeout, clock: clock)
        let box = DescriptorTransferBox()
        try await withTimeout(connectTimeout, clock: clock, request: "Connect") { [self] in
            try await deviceLimiter.withPermit(for: deviceID) {
                let permit = try await semaphore.acquire()
                defer { permit.release() }
                let socket = try await address.connect(clock: clock)
                async let _ = release(permit)
                var usbmuxd = UsbmuxConnection(over: socket.number)
                guard case .result(.ok) = try await usbmuxd.request(.connect(deviceID: deviceID, port: port)) else {
                    throw UsbmuxError.malformedMessage("an answer to Connect that is not a result")
                }
                box.put(socket)
            }
        }
        guard let descriptor = box.take() else { throw UsbmuxError.closed(request: "Connect") }
        return Connection(descriptor: descriptor, halfClose: .destroys, permit: streamPermit)
    }

    package func plan(
        deviceID: UInt32,
        route: USBRoute,
        session: UsbmuxdInstance,
        linkChecker: any LinkChecker
    ) -> ConnectPlan? {
        guard let server = address.socketAddress else { return nil }
        return ConnectPlan(
            route: .usb(route),
            address: server,
            handshake: ConnectPlan.Handshake(
                request: UsbmuxConnectMessage.request(deviceID: deviceID, port: route.port),
                evaluate: UsbmuxConnectMessage.evaluate,
                verify: { session.owns(connection: $0) }
            ),
            halfClose: .destroys,
            linkChecker: linkChecker,
            timeout: connectTimeout,
            timeoutError: .timedOut(route),
            limitKey: ConnectLimitKey(server: server, device: deviceID),
            acquirePermit: { [connectionLimit] in connectionLimit.tryAcquire() }
        )
    }

    /// Forwards a property list written by another client and returns usbmuxd's reply unchanged, including a rejection.
    ///
    /// For requests that usbmuxd itself answers with exactly one message. `request` names the request in errors.
    ///
    /// - Throws: `UsbmuxError` if there is no reply; `CancellationError`.
    package func forward(_ propertyList: [UInt8], for request: String) async throws -> UsbmuxMessage.Body {
        try await exchange(request) { try await $0.exchange(.propertyList(propertyList), for: request).body }
    }

    /// Sends a request that usbmuxd answers without the device.
    private func request(_ request: UsbmuxRequest) async throws -> UsbmuxReply {
        try await exchange(request.name) { try await $0.request(request) }
    }

    private func exchange<Reply: Sendable>(
        _ request: String,
        _ body: @escaping @Sendable (inout UsbmuxConnection) async throws -> Reply
    ) async throws -> Reply {
        try await withTimeout(replyTimeout, clock: clock, request: request) { [self] in
            let permit = try await semaphore.acquire()
            defer { permit.release() }
            let socket = try await address.connect(clock: clock)
            var usbmuxd = UsbmuxConnection(over: socket.number)
            return try await body(&usbmuxd)
        }
    }

    /// Releases the permit once the request is clearly waiting for the device.
    private func release(_ permit: Permit) async {
        // Ends early, by cancellation, when the reply arrives.
        try? await clock.sleep(for: Self.permitHoldTime)
        permit.release()
    }
}

/// A semaphore per device, kept as long as a task uses it.
///
/// A Connect waits for the device, not for usbmuxd. With one shared semaphore, a device that never answers would block
/// all others.
final class PerDeviceLimiter: Sendable {
    private struct Entry {
        let semaphore: AsyncSemaphore
        var users: Int
    }

    private let permits: Int
    private let entries = Mutex<[UInt32: Entry]>([:])

    init(permits: Int) { self.permits = permits }

    /// Runs the body while holding one of the device's permits.
    func withPermit<Value: Sendable>(for deviceID: UInt32, _ body: () async throws -> Value) async throws -> Value {
        let semaphore = entries.withLock { entries in
            entries[deviceID, default: Entry(semaphore: AsyncSemaphore(permits: permits), users: 0)].users += 1
            return entries[deviceID]?.semaphore
        }
        defer {
            entries.withLock { entries in
                entries[deviceID]?.users -= 1
                if entries[deviceID]?.users == 0 { entries[deviceID] = nil }
            }
        }
        let permit = try await semaphore?.acquire()
        defer { permit?.release() }
        return try await body()
    }
}

/// Limits the number of streams through usbmuxd, so that Patchbay cannot exhaust its descriptors.
///
/// usbmuxd exits when it runs out of descriptors, at about 1,019 clients with the usual limit of 1,024. Patchbay's own
/// Listen and list sockets (at most 6) are not counted.
package final class UsbmuxConnectionLimiter: Sendable {
    /// Half of the number that would end usbmuxd, which may have other clients.
    package static let standard = 512

    package let limit: Int
    private let semaphore: AsyncSemaphore

    /// - Parameter limit: The maximum number of open streams. The same number of tasks may wait.
    package init(limit: Int = UsbmuxConnectionLimiter.standard) {
        self.limit = limit
        semaphore = AsyncSemaphore(permits: limit)
    }

    /// The number of streams that are open or being opened.
    package var used: Int { limit - semaphore.available }

    /// The number of tasks that wait for a permit.
    var waiting: Int { semaphore.waiting }

    /// Returns a permit if one is free. The permit is released with its last reference.
    func tryAcquire() -> Permit? { semaphore.tryAcquire() }

    /// Waits for a permit. The permit is released with its last reference.
    ///
    /// - Throws: `UsbmuxError.tooManyConnections` if no permit becomes free in time or too many tasks wait already;
    ///   `CancellationError`.
    func acquire(within timeout: Duration, clock: any Clock<Duration>) async throws -> Permit {
        if let permit = semaphore.tryAcquire() { return permit }
        guard semaphore.waiting < limit else { throw UsbmuxError.tooManyConnections(limit) }
        guard
            let permit = try await withTimeout(timeout, clock: clock, { [semaphore] in try await semaphore.acquire() })
        else {
            throw UsbmuxError.tooManyConnections(limit)
        }
        return permit
    }
}

/// Limits the duration of a request. usbmuxd has no timeouts of its own and can hang (libimobiledevice/usbmuxd#114), so
/// every request to it has one here.
///
/// - Throws: Errors of `body`; `UsbmuxError.timedOut` with the request's name; `CancellationError`.
func withTimeout<Value: Sendable>(
    _ limit: Duration,
    clock: any Clock<Duration>,
    request: String,
    _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    guard let value = try await withTimeout(limit, clock: clock, body) else {
        throw UsbmuxError.timedOut(request: request, limit: limit)
    }
    return value
}

/// Moves a descriptor out of a task that may be abandoned. Closes a descriptor that is not taken.
final class DescriptorTransferBox: Sendable {
    private let held = Mutex<Descriptor?>(nil)

    func put(_ descriptor: consuming sending Descriptor) {
        var descriptor: Descriptor? = descriptor
        held.withLock { $0 = descriptor.take() }
    }

    func take() -> Descriptor? { held.withLock { $0.take() } }
}
