import Glibc
package import Model
import ServiceLifecycle
package import SystemIO

/// Serves the tools of each connected app to the broker's MCP client: one message per line on a stream inside the
/// process.
///
/// The broker dials such a stream as it dials an app's server, so approval, audit and limits are the same.
package final class DebugToolServer: Service {
    private let apps: DebugAppTable
    private let clock: any Clock<Duration>
    private let connections: AsyncStream<DebugToolConnection>
    private let continuation: AsyncStream<DebugToolConnection>.Continuation

    package init(for apps: DebugAppTable, clock: any Clock<Duration> = PollerClock()) {
        self.apps = apps
        self.clock = clock
        (connections, continuation) = AsyncStream.makeStream()
    }

    /// Opens a stream to the tools of the app behind an inbound route. The app may have disconnected.
    ///
    /// - Throws: `DialError`.
    package func dial(_ route: NetworkRoute) async throws -> Connection {
        guard let app = await apps.apps.last(where: { $0.route == route }) else {
            throw DialError(.refused, "the app at \(route.address) is not connected; start it again")
        }
        var numbers: [CInt] = [-1, -1]
        let kind = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &numbers) == 0 else {
            throw DialError(.failed, "no stream inside the broker could be opened: \(SocketError.message(for: errno))")
        }
        let near = Descriptor(owning: numbers[0])
        let far = Descriptor(owning: numbers[1])
        do {
            let stream = try DebugLinkSocket(far, clock: clock)
            continuation.yield(DebugToolConnection(app: app.id, apps: apps, stream: stream))
        } catch {
            throw DialError(.failed, "no stream inside the broker could be opened: \(error)")
        }
        return Connection(descriptor: near, halfClose: .propagates)
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown { [connections] in
            await withDiscardingTaskGroup { group in
                for await connection in connections { group.addTask { await connection.serve() } }
            }
        }
        continuation.finish()
    }
}

/// One stream of the broker to the tools of one app.
private struct DebugToolConnection: Sendable {
    /// The time in which the broker must read a response.
    private static let writeLimit = Duration.seconds(30)

    let app: Int
    let apps: DebugAppTable
    let stream: DebugLinkSocket
    private let writing = AsyncSemaphore(permits: 1)

    init(app: Int, apps: DebugAppTable, stream: DebugLinkSocket) {
        (self.app, self.apps, self.stream) = (app, apps, stream)
    }

    /// Answers requests until the broker closes the stream. A slow call delays no other.
    func serve() async {
        await withDiscardingTaskGroup { group in
            var decoder = LineDecoder(limit: .max)
            while let bytes = try? await stream.receive(), !bytes.isEmpty {
                decoder.append(bytes)
                while case .line(let line)? = decoder.next() { group.addTask { await respond(to: line) } }
            }
            group.cancelAll()
        }
    }

    private func respond(to line: ArraySlice<UInt8>) async {
        // A notification has no ID and needs no response.
        guard let request = (try? JSON(parsing: line))?.object, let id = request["id"] else { return }
        var response: JSONObject = ["jsonrpc": "2.0", "id": id]
        switch (request["method"]?.string, request["params"]?.object ?? [:]) {
        case ("initialize", let params): response["result"] = Self.description(speaking: params["protocolVersion"])
        case ("ping", _): response["result"] = [:]
        case ("tools/list", _): response["result"] = ["tools": .array(DebugTool.allCases.map(\.definition))]
        case ("tools/call", let params):
            guard let tool = params["name"]?.string.flatMap(DebugTool.init) else {
                response["error"] = ["code": -32_602, "message": "no such tool"]
                break
            }
            guard let result = await result(of: tool, params["arguments"]?.object ?? [:]) else { return }
            response["result"] = result
        default: response["error"] = ["code": -32_601, "message": "no such method"]
        }
        await send(.object(response))
    }

    /// Returns the result of a call; nil if it was cancelled.
    private func result(of tool: DebugTool, _ arguments: JSONObject) async -> JSON? {
        let call = DebugToolCall(tool: tool, arguments: arguments, app: app, apps: apps)
        do { return ["content": .array(try await call.run())] } catch is CancellationError {
            return nil
        } catch {
            var result = JSONObject.failure("\(error)")
            if (error as? DebugLinkError)?.isNotFound == true { result["_meta"] = ["patchbay/failure": "not-found"] }
            return .object(result)
        }
    }

    private func send(_ message: JSON) async {
        guard let permit = try? await writing.acquire() else { return }
        defer { permit.release() }
        var rest = (message.bytes + [UInt8(ascii: "\n")])[...]
        // Half a line would corrupt the next one.
        do { try await stream.send(&rest, stallLimit: Self.writeLimit) } catch { stream.close() }
    }

    private static func description(speaking version: JSON?) -> JSON {
        [
            "protocolVersion": version ?? "2025-06-18", "capabilities": ["tools": [:]],
            "serverInfo": ["name": "patchbay-debuglink", "version": .string(Version.text)],
            "instructions": "The app sends a state after each action. Texts and pictures are the app's own.",
        ]
    }
}
