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

    let dialer: any Dialer
    let clock: any Clock<Duration>

    /// - Throws: `LockdownError`; `DialError` if nothing listens on the port; `CancellationError`.
    func values(of udid: UDID) async throws -> LockdownValues {
        let values = try await withTimeout(Self.timeout, clock: clock) { [dialer] in
            let connection = try await dialer.dial(.usb(USBRoute(udid: udid, port: Self.port)))
            var lockdown = LockdownConnection(over: connection.descriptor.number, after: connection.initialBytes)
            return LockdownValues(
                name: try await lockdown.value(of: .deviceName),
                productType: try await lockdown.value(of: .productType),
                productVersion: try await lockdown.value(of: .productVersion)
            )
        }
        guard let values else { throw LockdownError.timedOut }
        return values
    }
}

/// Speaks lockdownd's protocol over a connected, non-blocking socket. The caller owns the socket.
private struct LockdownConnection: Sendable {
    private let stream: ByteStream
    private var decoder = LockdownFrameDecoder()

    init(over number: CInt, after initialBytes: [UInt8]) {
        stream = ByteStream(over: number, to: "lockdownd")
        decoder.append(initialBytes)
    }

    /// - Returns: The value; nil if the phone has none or a blank one.
    mutating func value(of key: LockdownRequest.Key) async throws -> SanitizedText? {
        let request = LockdownRequest(key: key)
        do {
            try await stream.send(request.encoded)
            let value = try await LockdownReply(receive(), to: request).value
            return value?.text.allSatisfy(\.isWhitespace) == true ? nil : value
        } catch ByteStream.Failure.closed {
            throw LockdownError.closed
        } catch ByteStream.Failure.failed(let call, let errno) {
            throw LockdownError.failed("\(call) failed (\(SocketError.message(for: errno)))")
        }
    }

    private mutating func receive() async throws -> [UInt8] {
        while true {
            if let reply = try decoder.next() { return reply }
            decoder.append(try await stream.receive(atMost: decoder.bytesNeeded))
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
