import Model
import SystemIO

/// The values that a phone tells every computer on its cable. Each is nil if the phone does not tell it.
struct LockdownValues: Hashable, Sendable {
    var name: SanitizedText?
    var productType: SanitizedText?
    var productVersion: SanitizedText?
}

/// Asks lockdownd, the configuration daemon of iPhones, for the values of a phone.
struct LockdownClient: Sendable {
    static let port: UInt16 = 62_078
    /// The maximum time for the connection and all requests.
    static let timeout = Duration.seconds(2)
    /// The longest accepted reply: 64 KiB. A reply with one value takes about 400 bytes.
    private static let limit = 64 << 10

    let dialer: any Dialer
    let clock: any Clock<Duration>

    /// - Throws: `LockdownError`; `DialError` if nothing listens on the port; `CancellationError`.
    func values(of udid: UDID) async throws -> LockdownValues {
        let values = try await withTimeout(Self.timeout, clock: clock) { [dialer] in
            let connection = try await dialer.dial(.usb(USBRoute(udid: udid, port: Self.port)))
            let stream = ByteStream(over: connection.descriptor.number, to: "lockdownd")
            return LockdownValues(
                name: try await Self.value(of: .deviceName, over: stream),
                productType: try await Self.value(of: .productType, over: stream),
                productVersion: try await Self.value(of: .productVersion, over: stream)
            )
        }
        guard let values else { throw LockdownError.timedOut }
        return values
    }

    /// - Returns: The value; nil if the phone has none or a blank one.
    private static func value(of key: LockdownKey, over stream: ByteStream) async throws -> SanitizedText? {
        do {
            try await stream.send(key.request)
            let length = try await stream.receive(exactly: 4).reduce(0) { $0 << 8 | Int($1) }
            // The length is validated before the reply is buffered, so a false length uses no memory.
            guard (1...limit).contains(length) else {
                throw LockdownError.malformedReply("a reply of \(length) bytes; the length must be 1 to \(limit)")
            }
            let value = try await key.value(in: stream.receive(exactly: length))
            return value?.text.allSatisfy(\.isWhitespace) == true ? nil : value
        } catch ByteStream.Failure.closed {
            throw LockdownError.closed
        } catch ByteStream.Failure.failed(let call, let errno) {
            throw LockdownError.failed("\(call) failed (\(SocketError.message(for: errno)))")
        }
    }
}

/// The reason why a phone did not tell its values.
enum LockdownError: Error, Hashable {
    /// The phone was not unlocked since its start.
    case locked
    /// lockdownd answered with another error; the text is lockdownd's own.
    case refused(SanitizedText)
    /// The data is not a reply of lockdownd; the text names the problem.
    case malformedReply(String)
    case closed
    case timedOut
    /// A system call failed.
    case failed(String)

    /// True if a later attempt may succeed: the phone is locked or still starting.
    var isTransient: Bool {
        switch self {
        case .locked, .closed, .timedOut, .failed: true
        case .refused, .malformedReply: false
        }
    }
}

extension LockdownError: CustomStringConvertible {
    var description: String {
        switch self {
        case .locked: "the phone is locked; unlock it"
        case .refused(let error): "lockdownd refused the request with \"\(error)\"; the phone is listed without a name"
        case .malformedReply(let problem): "invalid data from port \(LockdownClient.port) of the phone: \(problem)"
        case .closed: "lockdownd closed the connection before it answered; Patchbay retries"
        case .timedOut:
            "lockdownd did not answer within \(LockdownClient.timeout.components.seconds) s; unlock the phone"
        case .failed(let message): message
        }
    }
}
