import Glibc
import Model
import SystemIO

/// A stream to an app, while requests go over it one after the other.
final class UpstreamConnection: Sendable {
    /// Why a stream could not be written or read.
    enum Failure: Error, Hashable, Sendable {
        /// Not everything was handed to the kernel: no server acts on a request that has not come whole.
        case unwritten
        case broken
    }

    private static let chunk = 64 * 1_024
    /// How much of the end of a message is written in one step with the check of what it was admitted by.
    private static let tail = 16 * 1_024

    let route: Route
    private let carrier: Connection

    /// The carrier must have nothing that came early: what an app sends before it is asked is no answer.
    init(over route: Route, _ carrier: consuming Connection) {
        self.route = route
        self.carrier = carrier
    }

    /// Returns when the kernel has everything.
    ///
    /// - Throws: `Failure.unwritten`, `Trouble`, `CancellationError`.
    func send(
        _ bytes: [UInt8],
        by admission: Admission? = nil,
        within limit: Duration,
        clock: any Clock<Duration>
    ) async throws {
        let watch = ElapsedTimer(clock)
        var rest = bytes[...]
        while !rest.isEmpty {
            let left = limit - watch.elapsed
            rest = rest.dropFirst(try await sendSome(rest, by: admission, within: left, clock: clock))
        }
    }

    /// Returns when the kernel has some of it: how many bytes. The bytes that complete a message are sent only while what
    /// the message was admitted by counts.
    ///
    /// - Throws: `Failure.unwritten`, `Trouble.outdated`, `Trouble.mute`, `CancellationError`; then it has none.
    func sendSome(
        _ bytes: ArraySlice<UInt8>,
        by admission: Admission? = nil,
        within limit: Duration,
        clock: any Clock<Duration>
    ) async throws -> Int {
        let number = carrier.descriptor.number
        while true {
            let (count, code) = try write(bytes, by: admission)
            if count >= 0 { return count }
            if code == EAGAIN {
                // The poller takes one wait for each number, and somebody may be waiting to read.
                let copy = Descriptor(owning: fcntl(number, F_DUPFD_CLOEXEC, 0))
                guard copy.number >= 0 else { throw Failure.unwritten }
                guard
                    limit > .zero,
                    try await Poller.shared.wait(for: .writable, of: copy.number, atMost: limit, by: clock)
                else { throw Trouble.mute(seconds: Int(limit.components.seconds)) }
            } else if code != EINTR {
                throw Failure.unwritten
            }
        }
    }

    private func write(
        _ bytes: ArraySlice<UInt8>,
        by admission: Admission?
    ) throws(Trouble) -> (count: Int, code: CInt) {
        let number = carrier.descriptor.number
        func send(_ bytes: ArraySlice<UInt8>) -> (count: Int, code: CInt) {
            let count = bytes.withUnsafeBytes { Glibc.send(number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            return (count, count < 0 ? errno : 0)
        }
        guard let admission else { return send(bytes) }
        // No server acts on a request without its end. So a large one is written without holding up others, all but that.
        guard bytes.count <= Self.tail else { return send(bytes.dropLast(Self.tail)) }
        guard let sent = admission.deliver({ send(bytes) }) else { throw .outdated }
        return sent
    }

    /// What comes next, whenever it does; empty at the end of the stream.
    ///
    /// - Throws: `Failure.broken`, `CancellationError`.
    func receive() async throws -> [UInt8] {
        while true {
            if let bytes = try receiveNow() { return bytes }
            try await Poller.shared.wait(for: .readable, of: carrier.descriptor.number)
        }
    }

    /// What comes next; nil when nothing does for so long, empty at the end of the stream.
    ///
    /// - Throws: `Failure.broken`, `CancellationError`.
    func receive(within limit: Duration, clock: any Clock<Duration>) async throws -> [UInt8]? {
        while true {
            if let bytes = try receiveNow() { return bytes }
            let number = carrier.descriptor.number
            guard try await Poller.shared.wait(for: .readable, of: number, atMost: limit, by: clock) else { return nil }
        }
    }

    /// What is there already; nil when nothing is, empty at the end of the stream.
    func receiveNow() throws(Failure) -> [UInt8]? {
        let number = carrier.descriptor.number
        var code: CInt = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: Self.chunk) { buffer, count in
            var result = recv(number, buffer.baseAddress, buffer.count, 0)
            while result < 0, errno == EINTR { result = recv(number, buffer.baseAddress, buffer.count, 0) }
            if result < 0 { code = errno }
            count = max(0, result)
        }
        guard code != 0 else { return bytes }
        guard code == EAGAIN else { throw .broken }
        return nil
    }
}

/// A stream that an app keeps open after an answer, until the next request or its end.
struct PooledConnection: Sendable {
    /// How long one is kept. Servers close theirs after 5 s and more (uvicorn), and a request that meets that close is lost:
    /// better to be first.
    static let lifetime = Duration.seconds(2)

    let connection: UpstreamConnection
    private var rest: HTTPResponseParser
    let since: Duration

    /// The rest of the last answer may still come: the end of an event stream comes after its last message.
    init(_ connection: UpstreamConnection, rest: HTTPResponseParser, since: Duration) {
        self.connection = connection
        self.rest = rest
        self.since = since
    }

    /// Whether it may be used again once the answer has ended.
    var mayBecomeReady: Bool { !rest.isLastAnswer }

    /// The stream, if it is ready for another request: the last answer is complete, and neither an end nor anything else
    /// has come since.
    mutating func take() -> UpstreamConnection? { (try? isReady()) == true ? connection : nil }

    private mutating func isReady() throws -> Bool {
        while true {
            while let event = try rest.next() {
                // An answer that nobody asked for.
                if case .head = event { return false }
            }
            guard let bytes = try connection.receiveNow() else { return rest.mayGoOn }
            guard !bytes.isEmpty else { return false }
            rest.append(bytes)
        }
    }
}

/// The time since its beginning, by a clock that is given.
struct ElapsedTimer: Sendable {
    private let read: @Sendable () -> Duration

    init(_ clock: some Clock<Duration>) {
        let start = clock.now
        read = { start.duration(to: clock.now) }
    }

    var elapsed: Duration { read() }
}
