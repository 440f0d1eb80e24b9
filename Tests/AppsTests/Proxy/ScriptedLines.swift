import Glibc
import Model
import Synchronization
import SystemIO
import TestSupport

/// A line-based server with scripted responses, connected by socket pairs.
final class ScriptedLines: Dialer {
    enum Reply: Sendable {
        case result(JSON)
        case error(Int, String)
        /// Sends these lines; `ID` is replaced by the request's ID.
        case lines([String])
        case silence
        /// Closes the stream.
        case end
    }

    private struct State {
        var isUp = true
        var dials = 0
        var messages: [JSON] = []
        var streams: [Int: CInt] = [:]
    }

    private let state = Mutex(State())
    private let answer: @Sendable (JSON) -> Reply

    init(_ answer: @escaping @Sendable (JSON) -> Reply) { self.answer = answer }

    /// The behaviour of SwiftMCP before stateless mode: requests before `initialize` are rejected.
    static func legacy(_ call: @escaping @Sendable (JSON) -> Reply) -> ScriptedLines {
        ScriptedLines { message in
            switch message["method"]?.string {
            case "server/discover": .error(-32_000, "Session not initialized. Send initialize first.")
            case "initialize":
                .result([
                    "protocolVersion": "2025-11-25", "serverInfo": ["name": "lines", "version": "1"],
                    "capabilities": ["tools": ["listChanged": true]],
                ])
            case "tools/list":
                .result(["tools": [["name": "tap"], ["name": "look", "annotations": ["readOnlyHint": true]]]])
            case "tools/call": call(message)
            default: .silence
            }
        }
    }

    var dials: Int { state.withLock { $0.dials } }
    var messages: [JSON] { state.withLock { $0.messages } }
    func count(of method: String) -> Int { messages.count { $0["method"]?.string == method } }

    func set(isUp: Bool) { state.withLock { $0.isUp = isUp } }

    /// Sends a text on every stream.
    func send(_ text: String) {
        for number in state.withLock({ Array($0.streams.values) }) { Self.write(text, to: number) }
    }

    /// Closes every stream.
    func closeStreams() {
        for number in state.withLock({ Array($0.streams.values) }) { shutdown(number, CInt(SHUT_RDWR)) }
    }

    func dial(_ route: Route) async throws -> Connection {
        let dial = state.withLock { state in
            state.dials += 1
            return state.isUp ? state.dials : nil
        }
        guard let dial else { throw DialError(.refused, "nothing listens on \(route)") }
        var numbers: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &numbers) == 0 else {
            throw TestSupportError(call: "socketpair")
        }
        _ = fcntl(numbers[0], F_SETFL, O_NONBLOCK)
        let far = numbers[1]
        state.withLock { $0.streams[dial] = far }
        startThread(named: "scripted-lines") { [self] in serve(far, dial) }
        return Connection(descriptor: Descriptor(owning: numbers[0]), halfClose: .propagates)
    }

    private func serve(_ number: CInt, _ dial: Int) {
        let stream = Descriptor(owning: number)
        defer { state.withLock { $0.streams[dial] = nil } }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            while let end = bytes.firstIndex(of: 0x0A) {
                let line = bytes[..<end]
                bytes.removeSubrange(...end)
                guard let message = try? JSON(parsing: line) else { continue }
                state.withLock { $0.messages.append(message) }
                guard message["id"] != nil else { continue }
                guard respond(to: message, on: stream.number) else { return }
            }
            let count = Glibc.read(stream.number, &chunk, chunk.count)
            guard count > 0 else { return }
            bytes += chunk[..<count]
        }
    }

    private func respond(to message: JSON, on number: CInt) -> Bool {
        let id = message["id"] ?? .null
        switch answer(message) {
        case .result(let result):
            Self.write(JSON.object(["jsonrpc": "2.0", "id": id, "result": result]).text + "\n", to: number)
        case .error(let code, let text):
            let error: JSON = ["code": .number(JSONNumber(code)), "message": .string(text)]
            Self.write(JSON.object(["jsonrpc": "2.0", "id": id, "error": error]).text + "\n", to: number)
        case .lines(let lines):
            for line in lines { Self.write(line.replacing("ID", with: id.text) + "\n", to: number) }
        case .silence: break
        case .end: return false
        }
        return true
    }

    private static func write(_ text: String, to number: CInt) {
        let bytes = Array(text.utf8)
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}
