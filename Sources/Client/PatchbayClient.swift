import FoundationEssentials
import Model
import NIOCore
import NIOHTTP1

/// The broker's HTTP API as Swift calls.
///
/// A value without state: each call connects, asks, and closes, so that a broker which restarts between two calls is no
/// event. All calls throw `ClientError`; cancelling the task ends a call at once.
package struct PatchbayClient: Sendable {
    package let address: BrokerAddress
    /// How long the broker may say nothing before a call gives up.
    package let patience: Duration
    /// Who calls, asked for with each call; nil where the kernel's word on the unix socket is enough.
    private let token: @Sendable () -> AccessToken?

    /// A stream has a comment every 15 s, so three of them were missed.
    private static let streamPatience = Duration.seconds(45)

    /// - Parameters:
    ///   - socketPath: Absolute; `BrokerSocketPath.find` knows where the broker is.
    ///   - patience: For calls that are answered at once; a probe and a `wait` get more by themselves.
    package init(socketPath: String, patience: Duration = .seconds(10)) {
        self.init(address: .unix(path: socketPath), patience: patience)
    }

    package init(
        address: BrokerAddress,
        patience: Duration = .seconds(10),
        token: @escaping @Sendable () -> AccessToken? = { nil }
    ) {
        self.address = address
        self.token = token
        self.patience = patience
    }

    /// For one call, which ends when nothing comes for so long.
    func connection(silence: Duration) -> HTTPConnection {
        HTTPConnection(address: address, silence: silence, token: token())
    }

    /// Performs a call and reads its answer.
    func answer<Answer: Decodable>(
        to call: OutgoingRequest,
        as type: Answer.Type = Answer.self,
        extraPatience: Duration = .zero
    ) async throws -> Answer {
        let bytes = try await bytes(of: call, extraPatience: extraPatience)
        return try decode(type, from: bytes, what: "the answer to \(call.name)")
    }

    /// Performs a call whose answer has no body.
    func perform(_ call: OutgoingRequest) async throws {
        _ = try await bytes(of: call)
    }

    /// Performs a call whose answer is an event stream, until the broker ends it.
    func follow(_ call: OutgoingRequest, _ handle: (ServerSentEvent) async throws -> Void) async throws {
        var call = call
        call.accept = "text/event-stream"
        var parser = SSEDecoder(limit: HTTPConnection.bodyLimit)
        try await connection(silence: max(patience, Self.streamPatience)).perform(call) {
            buffer in
            for event in try parser.feed(buffer.readableBytesView) { try await handle(event) }
        }
    }

    func decode<Value: Decodable>(_ type: Value.Type, from bytes: some Sequence<UInt8>, what: String) throws -> Value {
        do {
            return try JSONCoding.decoder().decode(type, from: Data(bytes))
        } catch {
            throw ClientError.notUnderstood(what: what, detail: Self.text(of: error))
        }
    }

    func body(_ value: some Encodable) throws -> [UInt8] { Array(try JSONCoding.encoder().encode(value)) }

    /// Performs a call and returns its answer as it came.
    func bytes(
        of call: OutgoingRequest,
        extraPatience: Duration = .zero,
        limit: Int = HTTPConnection.bodyLimit
    ) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        let connection = connection(silence: patience + extraPatience)
        try await connection.perform(call) { buffer in
            bytes += buffer.readableBytesView
            guard bytes.count <= limit else {
                throw ClientError.notUnderstood(
                    what: "the answer to \(call.name)",
                    detail: "it is larger than \(limit) bytes"
                )
            }
        }
        return bytes
    }

    /// Where in the document it went wrong, without the pages that a DecodingError prints.
    private static func text(of error: any Error) -> String {
        switch error {
        case DecodingError.keyNotFound(let key, let context):
            "\(path(context.codingPath)) has no \"\(key.stringValue)\""
        case DecodingError.dataCorrupted(let context), DecodingError.typeMismatch(_, let context),
            DecodingError.valueNotFound(_, let context):
            "\(path(context.codingPath)): \(context.debugDescription)"
        default: "\(error)"
        }
    }

    private static func path(_ keys: [any CodingKey]) -> String {
        keys.isEmpty
            ? "the document" : keys.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
    }
}

/// Where a broker takes calls.
package enum BrokerAddress: Hashable, Sendable {
    case unix(path: String)
    /// `127.0.0.1` or `::1`: nothing else is called without encryption.
    case loopback(host: String, port: UInt16)

    /// What requests say in `Host`; the broker refuses what a web page could make them say.
    var host: String {
        switch self {
        case .unix: "localhost"
        case .loopback: description
        }
    }
}

extension BrokerAddress: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unix(let path): path
        case .loopback(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        }
    }
}

/// What a caller shows to be let in: a grant's token. Printing, dumping and reflecting it shows nothing of it.
package struct AccessToken: Sendable {
    private let text: String

    package init(_ text: String) { self.text = text }

    /// RFC 6750, section 2.1.
    var header: (name: String, value: String) { ("Authorization", "Bearer \(text)") }
}

extension AccessToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(token)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
