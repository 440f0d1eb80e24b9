import FoundationEssentials
import Glibc
import Model
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Apps

/// A plain HTTP server with scripted responses, connected by socket pairs. It records each request byte for byte.
final class PlainServer: Dialer {
    enum Reply: Sendable {
        case json(String, status: Int = 200)
        case bytes([UInt8], type: String)
        /// Reads the request and closes the connection.
        case drop
        /// Reads the request and sends nothing.
        case silence
    }

    private struct State {
        /// Receives the request line and the whole request.
        var answer: @Sendable (String, String) -> Reply
        var requests: [String] = []
    }

    private let state: Mutex<State>

    init(_ answer: @escaping @Sendable (String, String) -> Reply) { state = Mutex(State(answer: answer)) }

    /// The requests, with a mark instead of Patchbay's version.
    var requests: [String] { state.withLock { $0.requests } }
    /// The request lines without the version of HTTP.
    var lines: [String] { requests.map { String($0.prefix { $0 != "\r\n" }.dropLast(" HTTP/1.1".count)) } }
    /// The requests without those of the recognition, which is repeated after a pause.
    var calls: [(line: String, text: String)] {
        zip(lines, requests).filter { $0 != "GET /healthz" && ($0 != "GET /elements" || $1.contains("Authorization")) }
            .map { ($0, $1) }
    }

    /// Answers like another server from now on.
    func relaunch(as other: PlainServer) {
        let answer = other.state.withLock { $0.answer }
        state.withLock { $0.answer = answer }
    }

    func dial(_ route: Route) async throws -> Connection {
        var numbers: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &numbers) == 0 else {
            throw TestSupportError(call: "socketpair")
        }
        _ = fcntl(numbers[0], F_SETFL, O_NONBLOCK)
        let far = numbers[1]
        startThread(named: "plain-server") { [self] in serve(Descriptor(owning: far)) }
        return Connection(descriptor: Descriptor(owning: numbers[0]), halfClose: .propagates)
    }

    private func serve(_ stream: consuming Descriptor) {
        guard let request = Self.read(stream.number) else { return }
        let shown = request.replacing("patchbay/\(Version.text)", with: "patchbay/VERSION")
        let answer = state.withLock { state in
            state.requests.append(shown)
            return state.answer
        }
        let line = String(request.prefix { $0 != "\r\n" }.dropLast(" HTTP/1.1".count))
        switch answer(line, request) {
        case .json(let body, let status): Self.write(status, "application/json", Array(body.utf8), to: stream.number)
        case .bytes(let body, let type): Self.write(200, type, body, to: stream.number)
        case .drop: return
        case .silence: _ = Self.read(stream.number)
        }
    }

    private static func write(_ status: Int, _ type: String, _ body: [UInt8], to number: CInt) {
        let head = "HTTP/1.1 \(status) X\r\nContent-Type: \(type)\r\nContent-Length: \(body.count)\r\n\r\n"
        var rest = (Array(head.utf8) + body)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    private static func read(_ number: CInt) -> String? {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let text = String(decoding: bytes, as: UTF8.self)
            if let end = text.firstRange(of: "\r\n\r\n") {
                let length = text.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }
                    .flatMap { Int($0.dropFirst("Content-Length: ".count)) }
                if text[end.upperBound...].utf8.count >= length ?? 0 { return text }
            }
            let count = Glibc.read(number, &chunk, chunk.count)
            guard count > 0 else { return nil }
            bytes += chunk[..<count]
        }
    }
}

/// The servers of the profiles in `config/profiles`, as their documents describe them.
extension PlainServer {
    static let picture =
        Data(
            base64Encoded:
                "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
        ).map(Array.init) ?? []
    /// The beginning of an MP4 file, with its type box.
    static let video: [UInt8] =
        [0, 0, 0, 16] + Array("ftypisom".utf8) + [0, 0, 2, 0] + Array(repeating: 7, count: 500)

    /// An app with app-debug. `reply` replaces the response to a request line.
    static func appDebug(_ reply: @escaping @Sendable (String) -> Reply? = { _ in nil }) -> PlainServer {
        PlainServer { line, _ in
            if let reply = reply(line) { return reply }
            return switch line {
            case "GET /actions": .json(#"["buy","cancel"]"#)
            case "GET /screenshot": .bytes(picture, type: "image/png")
            case "GET /state": .json(#"{"user":{"name":"Anna"}}"#)
            case "POST /activate", "POST /record/start": .json(#"{"ok": true}"#)
            case "POST /record/stop": .bytes(video, type: "video/mp4")
            default: .json(#"{"error":"not found"}"#, status: 404)
            }
        }
    }

    /// An app with DebugBridge, which accepts this boot token once.
    static func debugBridge(
        boot: String,
        _ reply: @escaping @Sendable (String) -> Reply? = { _ in nil }
    ) -> PlainServer {
        let token = Mutex(boot)
        return PlainServer { line, request in
            if let reply = reply(line) { return reply }
            if line == "GET /healthz" {
                let identity = #""accessor_hash":"ab12","bundle_id":"com.example.shop""#
                return .json(#"{"version":"1","build":"42",\#(identity)}"#)
            }
            guard request.contains("Authorization: Bearer \(token.withLock { $0 })\r\n") else {
                return .json(#"{"error":"unauthorized"}"#, status: 401)
            }
            switch line {
            case "POST /auth/rotate":
                guard token.withLock({ $0 == boot }) else {
                    return .json(#"{"error":"boot_token_invalid"}"#, status: 401)
                }
                let body = request.split(separator: "\r\n").last.flatMap { try? JSON(parsing: String($0)) }
                token.withLock { $0 = body?["new_token"]?.string ?? "" }
                return .json(#"{"ok":true}"#)
            case "POST /session/acquire": return .json(#"{"session_id":"S-1","ttl_seconds":300}"#)
            case "GET /elements": return .json(#"{"elements":[]}"#)
            default: return .json(#"{"ok":true}"#)
            }
        }
    }
}

/// A number that a test's threads share.
final class Counter: Sendable {
    private let value = Mutex(0)

    /// Adds one and returns the sum.
    @discardableResult
    func enter() -> Int {
        value.withLock { value in
            value += 1
            return value
        }
    }

    func leave() { value.withLock { $0 -= 1 } }
}

extension Profile {
    /// Loads a profile of `config/profiles`.
    static func shipped(_ name: String) throws -> Profile {
        let root = #filePath.split(separator: "/").dropLast(5).joined(separator: "/")
        let data = try #require(FileManager.default.contents(atPath: "/\(root)/config/profiles/\(name).toml"))
        return try Profile(parsing: String(decoding: data, as: UTF8.self), file: "\(name).toml")
    }

    /// All profiles of `config/profiles`.
    static func allShipped() throws -> [Profile] {
        try ["app-debug", "debugbridge", "devicekit", "mobilecli", "simlock", "webdriveragent"].map(shipped)
    }
}
