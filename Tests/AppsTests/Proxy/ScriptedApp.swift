import FoundationEssentials
import Glibc
import Model
import Synchronization
import SystemIO
import TestSupport

/// An app with scripted responses, connected by socket pairs without network and port.
final class ScriptedApp: Dialer {
    /// A received request.
    struct Request: Sendable {
        let head: String
        let body: JSON

        var method: String { body["method"]?.string ?? "" }
        func header(_ name: String) -> String? {
            head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("\(name.lowercased()): ") }
                .map { String($0.dropFirst(name.utf8.count + 2)) }
        }
    }

    enum Reply: Sendable {
        /// A JSON-RPC result.
        case result(JSON)
        case error(Int, String)
        case http(Int, [String], String)
        /// These bytes, then the end of the stream.
        case raw(String)
        /// A response with these headers and this body, then the end of the stream.
        case bytes([String], [UInt8])
        /// An event stream with these messages and the result.
        case stream([JSON], then: JSON)
        /// An event stream that stays open until the client closes it.
        case open([JSON])
        /// An event stream with requests of the app. Each is sent after the response to the previous one, and the
        /// result is computed from the responses.
        case asking([JSON], then: @Sendable ([JSON]) -> JSON)
        /// An event stream that sends one message when available and stays open until the client closes it.
        case later(@Sendable () -> JSON?)
        /// A head that announces a long body, then one byte every 20 ms until the client closes the stream.
        case trickle
        /// Reads the request and closes the stream.
        case drop
        /// Reads the request and sends nothing.
        case silence
    }

    private struct State {
        var isUp = true
        var token: String?
        var keepsConnections = false
        /// Announces a persistent connection and closes it anyway.
        var closesKeptStreams = false
        /// Rejects a request at once if it does not begin like HTTP.
        var rejectsLines = false
        var requests: [Request] = []
        var open = 0
        var dials: [Route] = []
    }

    private let state = Mutex(State())
    private let answer: @Sendable (Request) -> Reply

    init(_ answer: @escaping @Sendable (Request) -> Reply) { self.answer = answer }

    /// The behaviour of AppReveal: one protocol version, 204 for notifications, no ping, one response per connection.
    static func appReveal(_ call: @escaping @Sendable (JSON) -> Reply = { _ in .result(["content": []]) })
        -> ScriptedApp
    {
        ScriptedApp { request in
            switch request.method {
            case "initialize":
                .result([
                    "protocolVersion": "2025-06-18", "capabilities": ["tools": [:]],
                    "serverInfo": ["name": "AppReveal", "version": "0.10.1"],
                ])
            case "tools/list":
                .result(["tools": [["name": "tap"], ["name": "get_screen", "annotations": ["readOnlyHint": true]]]])
            case "tools/call": call(request.body["params"] ?? .null)
            case let method where method.hasPrefix("notifications/"): .http(204, [], "")
            default: .error(-32_601, "Method not found")
            }
        }
    }

    /// The scripted response, for apps that wrap another app.
    func reply(to request: Request) -> Reply { answer(request) }

    var requests: [Request] { state.withLock { $0.requests } }
    var calls: [Request] { requests.filter { $0.method == "tools/call" } }
    /// The number of open event streams.
    var open: Int { state.withLock { $0.open } }
    var dials: [Route] { state.withLock { $0.dials } }

    func set(isUp: Bool) { state.withLock { $0.isUp = isUp } }
    func set(token: String?) { state.withLock { $0.token = token } }
    func answersLines() { state.withLock { $0.rejectsLines = true } }
    func keepConnections(closing closesKeptStreams: Bool = false) {
        state.withLock {
            $0.keepsConnections = true
            $0.closesKeptStreams = closesKeptStreams
        }
    }

    func dial(_ route: Route) async throws -> Connection {
        let isUp = state.withLock { state in
            state.dials.append(route)
            return state.isUp
        }
        guard isUp else { throw DialError(.refused, "nothing listens on \(route)") }
        var numbers: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &numbers) == 0 else {
            throw TestSupportError(call: "socketpair")
        }
        _ = fcntl(numbers[0], F_SETFL, O_NONBLOCK)
        let far = numbers[1]
        startThread(named: "scripted-app") { [self] in serve(far) }
        return Connection(descriptor: Descriptor(owning: numbers[0]), halfClose: .propagates)
    }

    private func serve(_ number: CInt) {
        let stream = Descriptor(owning: number)
        while let request = Self.read(stream.number, rejectsLines: state.withLock { $0.rejectsLines }) {
            let (token, keepsConnection) = state.withLock { state in
                state.requests.append(request)
                return (state.token, state.keepsConnections)
            }
            let isAuthorized = token == nil || request.header("Authorization") == "Bearer \(token ?? "")"
            let reply =
                isAuthorized
                ? answer(request)
                : .http(401, [], #"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Unauthorized"}}"#)
            if case .open(let messages) = reply {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
                state.withLock { $0.open += 1 }
                Self.write(head + messages.map { "data: \($0.text)\n\n" }.joined(), to: stream.number)
                _ = Self.read(stream.number)
                return state.withLock { $0.open -= 1 }
            }
            if case .asking(let questions, let result) = reply {
                return ask(questions, stream.number, request, result)
            }
            if case .later(let message) = reply {
                Self.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", to: stream.number)
                let end = ContinuousClock.now + .seconds(5)
                while ContinuousClock.now < end {
                    guard let message = message() else { usleep(5_000); continue }
                    Self.write("data: \(message.text)\n\n", to: stream.number)
                    break
                }
                _ = Self.read(stream.number)
                return
            }
            if case .trickle = reply {
                Self.write(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n",
                    to: stream.number
                )
                while Self.write(" ", to: stream.number) { usleep(20_000) }
                return
            }
            if case .bytes(let headers, let body) = reply {
                let head = ["HTTP/1.1 200 OK", "Content-Length: \(body.count)", "Connection: close"] + headers
                Self.write(Array("\(head.joined(separator: "\r\n"))\r\n\r\n".utf8) + body, to: stream.number)
                return
            }
            guard let text = Self.text(of: reply, to: request, keepsConnection) else {
                if case .silence = reply { _ = Self.read(stream.number) }
                return
            }
            guard Self.write(text, to: stream.number), keepsConnection, !state.withLock({ $0.closesKeptStreams }) else {
                return
            }
        }
    }

    private func ask(_ questions: [JSON], _ number: CInt, _ request: Request, _ result: ([JSON]) -> JSON) {
        Self.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", to: number)
        var answers: [JSON] = []
        for question in questions {
            let before = requests.count
            Self.write("data: \(question.text)\n\n", to: number)
            let end = ContinuousClock.now + .seconds(10)
            while answers.last?["id"] != question["id"], ContinuousClock.now < end {
                let answer = requests.dropFirst(before).first {
                    $0.body["id"] == question["id"] && $0.body["method"] == nil
                }
                if let answer { answers.append(answer.body) } else { usleep(5_000) }
            }
        }
        let last: JSON = ["jsonrpc": "2.0", "id": request.body["id"] ?? .null, "result": result(answers)]
        Self.write("data: \(last.text)\n\n", to: number)
    }

    @discardableResult
    private static func write(_ text: String, to number: CInt) -> Bool { write(Array(text.utf8), to: number) }

    @discardableResult
    private static func write(_ bytes: [UInt8], to number: CInt) -> Bool {
        send(number, bytes, bytes.count, CInt(MSG_NOSIGNAL)) == bytes.count
    }

    private static func read(_ number: CInt, rejectsLines: Bool = false) -> Request? {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let text = String(decoding: bytes, as: UTF8.self)
            if let end = text.firstRange(of: "\r\n\r\n") {
                let head = String(text[..<end.lowerBound])
                let body = text[end.upperBound...]
                let length =
                    head.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }
                    .flatMap { Int($0.dropFirst("Content-Length: ".count)) } ?? 0
                if body.utf8.count >= length {
                    return Request(head: head, body: (try? JSON(parsing: String(body))) ?? .null)
                }
            }
            let count = Glibc.read(number, &chunk, chunk.count)
            guard count > 0 else { return nil }
            bytes += chunk[..<count]
            if rejectsLines, bytes.first == UInt8(ascii: "{") {
                write("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", to: number)
                return nil
            }
        }
    }

    private static func text(of reply: Reply, to request: Request, _ keepsConnection: Bool) -> String? {
        let id = request.body["id"] ?? .null
        switch reply {
        case .result(let result):
            return http(200, [], JSON.object(["jsonrpc": "2.0", "id": id, "result": result]).text, keepsConnection)
        case .error(let code, let message):
            let error: JSON = ["code": .number(JSONNumber(code)), "message": .string(message)]
            return http(200, [], JSON.object(["jsonrpc": "2.0", "id": id, "error": error]).text, keepsConnection)
        case .http(let status, let headers, let body): return http(status, headers, body, keepsConnection)
        case .stream(let messages, let result):
            let all = messages + [["jsonrpc": "2.0", "id": id, "result": result]]
            let events = all.map { "event: message\ndata: \($0.text)\n\n" }.joined()
            return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "\(String(events.utf8.count, radix: 16))\r\n\(events)\r\n0\r\n\r\n"
        case .raw(let text): return text
        case .drop, .silence, .open, .asking, .later, .trickle, .bytes: return nil
        }
    }

    private static func http(_ status: Int, _ headers: [String], _ body: String, _ keepsConnection: Bool) -> String {
        let all =
            ["HTTP/1.1 \(status) X", "Content-Type: application/json", "Content-Length: \(body.utf8.count)"]
            + (keepsConnection ? [] : ["Connection: close"]) + headers
        return all.joined(separator: "\r\n") + "\r\n\r\n" + body
    }
}
