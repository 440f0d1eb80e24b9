import Synchronization
package import SystemIO

/// Speaks to usbmuxd itself, a connection per request.
///
/// Every request has its own deadline. At most 4 wait for usbmuxd at a time, because its accept queue holds 5. A Connect
/// also waits for the phone, which may be silent for ever: it gives its place among the 4 to the next one after
/// `patience`, and at most 4 wait for one phone, so that a silent phone delays nobody but those who want that phone.
package final class NativeUsbmuxClient: UsbmuxClient {
    private static let requestsInFlight = 4
    private static let connectsPerPhone = 4
    private static let patience = Duration.milliseconds(50)

    private let address: UsbmuxAddress
    private let budget: UsbmuxConnectionLimit
    private let clock: any Clock<Duration>
    private let connectLimit: Duration
    private let answerLimit: Duration
    private let gate = AsyncSemaphore(places: requestsInFlight)
    private let phones = PerDeviceLimiter(places: connectsPerPhone)

    /// The budget is shared with whoever else opens streams to the same usbmuxd. `connectLimit` is the most that a stream
    /// waits for a place in the budget, and the most that a Connect takes, waiting for its turn included; `answerLimit` the
    /// most that any other request takes.
    package init(
        address: UsbmuxAddress,
        budget: UsbmuxConnectionLimit = UsbmuxConnectionLimit(),
        clock: any Clock<Duration> = PollerClock(),
        connectLimit: Duration = .seconds(10),
        answerLimit: Duration = .seconds(5)
    ) {
        self.address = address
        self.budget = budget
        self.clock = clock
        self.connectLimit = connectLimit
        self.answerLimit = answerLimit
    }

    package func listDevices() async throws -> [UsbmuxDeviceRecord] {
        guard case .devices(let devices) = try await ask(.listDevices) else {
            throw UsbmuxError.garbled("an answer to ListDevices without a list")
        }
        return devices
    }

    package func readBUID() async throws -> String {
        guard case .buid(let buid) = try await ask(.readBUID) else {
            throw UsbmuxError.garbled("an answer to ReadBUID without one")
        }
        return buid
    }

    package func connect(deviceID: UInt32, port: UInt16) async throws -> Connection {
        let lease = try await budget.lease(within: connectLimit, clock: clock)
        let handover = TransferBox()
        try await Deadline(limit: connectLimit, clock: clock).run("Connect") { [self] in
            try await phones.hold(deviceID) {
                let permit = try await gate.enter()
                defer { permit.giveBack() }
                let socket = try await address.connect(clock: clock)
                async let _ = release(permit)
                var wire = UsbmuxConnection(over: socket.number)
                guard case .result(.ok) = try await wire.ask(.connect(deviceID: deviceID, port: port)) else {
                    throw UsbmuxError.garbled("an answer to Connect that is no result")
                }
                handover.put(socket)
            }
        }
        guard let descriptor = handover.take() else { throw UsbmuxError.closed(request: "Connect") }
        return Connection(descriptor: descriptor, halfClose: .destroys, lease: lease)
    }

    /// Asks for somebody else, who wrote the property list and gets the answer as it is, a refusal too. For requests
    /// that usbmuxd answers by itself, once; `request` is what to call this one in an error.
    /// - Throws: `UsbmuxError` when there is no answer; `CancellationError`.
    package func pass(_ propertyList: [UInt8], for request: String) async throws -> UsbmuxMessage.Body {
        try await exchange(request) { try await $0.exchange(.propertyList(propertyList), for: request).body }
    }

    /// Asks something that usbmuxd answers by itself.
    private func ask(_ request: UsbmuxRequest) async throws -> UsbmuxReply {
        try await exchange(request.name) { try await $0.ask(request) }
    }

    private func exchange<Answer: Sendable>(
        _ request: String,
        _ body: @escaping @Sendable (inout UsbmuxConnection) async throws -> Answer
    ) async throws -> Answer {
        try await Deadline(limit: answerLimit, clock: clock).run(request) { [self] in
            let permit = try await gate.enter()
            defer { permit.giveBack() }
            let socket = try await address.connect(clock: clock)
            var wire = UsbmuxConnection(over: socket.number)
            return try await body(&wire)
        }
    }

    /// Lets the next request in once it is plain that this one waits for the phone.
    private func release(_ permit: Permit) async {
        // Ends early, by cancellation, as soon as there is an answer.
        try? await clock.sleep(for: Self.patience)
        permit.giveBack()
    }
}

/// A gate for each phone, there as long as somebody stands at it.
///
/// Why one for each: a Connect waits for the phone, not for usbmuxd. Were there only one gate, a phone that never answers
/// would hold it against all others.
final class PerDeviceLimiter: Sendable {
    private struct Entry {
        let gate: AsyncSemaphore
        var users: Int
    }

    private let places: Int
    private let entries = Mutex<[UInt32: Entry]>([:])

    init(places: Int) { self.places = places }

    func hold<Value: Sendable>(_ deviceID: UInt32, while body: () async throws -> Value) async throws -> Value {
        let gate = entries.withLock { entries in
            entries[deviceID, default: Entry(gate: AsyncSemaphore(places: places), users: 0)].users += 1
            return entries[deviceID]?.gate
        }
        defer {
            entries.withLock { entries in
                entries[deviceID]?.users -= 1
                if entries[deviceID]?.users == 0 { entries[deviceID] = nil }
            }
        }
        let permit = try await gate?.enter()
        defer { permit?.giveBack() }
        return try await body()
    }
}

/// Counts the streams through usbmuxd, so that Patchbay is never the reason for its end.
///
/// usbmuxd exits when it runs out of descriptors, at about 1,019 clients with the usual limit of 1,024. The few sockets
/// for listening and listing (at most 6) are not counted here.
package final class UsbmuxConnectionLimit: Sendable {
    /// Half of what would end usbmuxd: there are other clients.
    package static let standard = 512

    package let limit: Int
    private let gate: AsyncSemaphore

    /// - Parameter limit: Streams at once; as many more may wait for a place.
    package init(limit: Int = UsbmuxConnectionLimit.standard) {
        self.limit = limit
        gate = AsyncSemaphore(places: limit)
    }

    /// Streams open or being opened.
    package var used: Int { limit - gate.free }

    /// Streams that wait for a place.
    var waiting: Int { gate.waiting }

    /// Waits for a place. It is given back when the last reference to the permit goes.
    ///
    /// - Throws: `UsbmuxError.limit` when none is free in time, or when as many wait already as there are places;
    ///   `CancellationError`.
    func lease(within patience: Duration, clock: any Clock<Duration>) async throws -> Permit {
        if let permit = gate.enterNow() { return permit }
        guard gate.waiting < limit else { throw UsbmuxError.limit(limit) }
        guard let permit = try await withDeadline(patience, clock: clock, { [gate] in try await gate.enter() }) else {
            throw UsbmuxError.limit(limit)
        }
        return permit
    }
}

/// Ends work that takes too long. usbmuxd has no time limits of its own and can hang (libimobiledevice/usbmuxd#114), so
/// everything that is asked of it has one here.
struct Deadline: Sendable {
    let limit: Duration
    let clock: any Clock<Duration>

    /// - Throws: What `body` throws, `UsbmuxError.timedOut` for the request named, or `CancellationError`.
    func run<Value: Sendable>(
        _ request: String,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard let value = try await withDeadline(limit, clock: clock, body) else {
            throw UsbmuxError.timedOut(request: request, limit: limit)
        }
        return value
    }
}

/// Carries a descriptor out of a task that may be given up on: what nobody takes is closed.
final class TransferBox: Sendable {
    private let held = Mutex<Descriptor?>(nil)

    func put(_ descriptor: consuming sending Descriptor) {
        var descriptor: Descriptor? = descriptor
        held.withLock { $0 = descriptor.take() }
    }

    func take() -> Descriptor? { held.withLock { $0.take() } }
}
