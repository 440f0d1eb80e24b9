import Glibc
import Model
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Tunnels

/// Connections that the event loop makes in advance to a server like adb's, which needs two requests for a stream.
@Suite(.timeLimit(.minutes(1)), .scratchFolder) struct SpareConnectionTests {
    private let scratch = ScratchFolder.current
    private let fixture = TunnelTableFixture()

    /// A server whose second request opens an echo. Notes each request with the number of its connection.
    final class Server: Sendable {
        /// The behaviour of the server towards one connection.
        enum Treatment { case closes, closesAtRequest, refuses }

        private struct State {
            var count = 0
            var notes: [String] = []
            var sockets: [Int: CInt] = [:]
            var treatments: [Int: Treatment] = [:]
        }

        private let state = Mutex(State())

        var notes: [String] { state.withLock { $0.notes } }

        /// The connection that has made the first request alone; nil if there is none.
        var waiting: Int? {
            state.withLock { state in
                let last = state.notes.last?.split(separator: " ")
                return last?.last == "one" ? last?.first.flatMap { Int($0) } : nil
            }
        }

        func treat(_ connection: Int, _ treatment: Treatment) {
            state.withLock { state in
                state.treatments[connection] = treatment
                if treatment == .closes, let socket = state.sockets[connection] { shutdown(socket, CInt(SHUT_RDWR)) }
            }
        }

        func serve(_ number: CInt) {
            let name = state.withLock { state in
                state.count += 1
                state.sockets[state.count] = number
                return state.count
            }
            defer { state.withLock { $0.sockets[name] = nil } }
            guard receive(from: number, name) == "one" else { return }
            send("OK", to: number)
            guard receive(from: number, name) == "two" else { return }
            switch state.withLock({ $0.treatments[name] }) {
            case nil: send("OK", to: number)
            case .refuses: return send("NO", to: number)
            case .closes, .closesAtRequest: return
            }
            var byte: UInt8 = 0
            while recv(number, &byte, 1, 0) == 1 { _ = BlockingStream.send([byte], to: number) }
        }

        private func receive(from number: CInt, _ name: Int) -> String {
            var bytes = [UInt8](repeating: 0, count: 3)
            guard recv(number, &bytes, 3, CInt(MSG_WAITALL)) == 3 else { return "" }
            let request = String(decoding: bytes, as: UTF8.self)
            state.withLock { $0.notes.append("\(name) \(request)") }
            return request
        }

        private func send(_ text: String, to number: CInt) {
            _ = BlockingStream.send(Array(text.utf8)[...], to: number)
        }
    }

    private struct Planner: ConnectPlanner {
        let path: String
        let key: ConnectLimitKey
        let isCurrent: @Sendable () -> Bool

        func plan(for route: Route) -> ConnectPlan {
            let handshake = ConnectPlan.Handshake(
                requests: [Array("one".utf8), Array("two".utf8)],
                evaluate: { bytes in
                    if bytes.count < 2 { return .incomplete }
                    return bytes.prefix(2).elementsEqual("OK".utf8) ? .accepted(length: 2) : .failed(.rejected(code: 7))
                },
                verify: { [isCurrent] _ in isCurrent() }
            )
            return ConnectPlan(
                route: route,
                method: .socket(.unix(path: path), handshake),
                timeout: .seconds(5),
                limitKey: key
            ) { failure, _ throws(DialError) in throw DialError(.refused, "\(failure)") }
        }
    }

    private func withTunnel(
        to server: Server,
        isCurrent: @escaping @Sendable () -> Bool = { true },
        _ body: (_ echo: () async throws -> Void, LoopbackServer) async throws -> Void
    ) async throws {
        let path = scratch.file("server")
        let listener = try LoopbackServer(unixPath: path, backlog: 8, pause: .zero) { server.serve($0) }
        defer { listener.stop() }
        let planner = Planner(path: path, key: ConnectLimitKey(server: server, device: 1), isCurrent: isCurrent)
        fixture.resolver.set(.success([.usb(USBRoute(udid: TunnelTableFixture.udid, port: 1))]))
        let table = try await fixture.table(planner)
        try await fixture.running(table) {
            let address = try fixture.address(try await table.create(fixture.spec()))
            try await body(
                {
                    let client = try await SocketStream.connect(to: address)
                    try await client.send([7])
                    #expect(try await client.receive(1) == [7])
                    client.finish()
                    #expect(try await client.receiveToEnd() == [])
                },
                listener
            )
            #expect(await table.list().first?.statistics.failures == [:])
        }
    }

    /// Opens streams until a connection was made in advance. The first one may come before the loop has a plan.
    ///
    /// - Returns: The number of that connection.
    private func prepare(_ server: Server, _ echo: () async throws -> Void) async throws -> Int {
        try await eventually("a connection waits") {
            try await echo()
            // The connection is made after the stream has opened, and the answer has to arrive too.
            try await Task.sleep(for: .milliseconds(50))
            return server.waiting
        }
    }

    @Test func `the stream after the first one sends the last request alone, on a connection that waited`() async throws
    {
        let server = Server()
        try await withTunnel(to: server) { echo, listener in
            let number = try await prepare(server, echo)
            try await eventually("a stream uses it") {
                try await echo()
                return server.notes.contains("\(number) two")
            }
            try await eventually("a connection without a client is closed") { listener.openConnections == 0 }
        }
    }

    @Test(arguments: [Server.Treatment.closes, .closesAtRequest, .refuses])
    func `a connection that waited and fails is replaced without loss`(treatment: Server.Treatment) async throws {
        let server = Server()
        try await withTunnel(to: server) { echo, _ in
            server.treat(try await prepare(server, echo), treatment)
            try await echo()
            try await echo()
        }
    }

    @Test func `a connection that waited while the device may have left is not used`() async throws {
        let server = Server()
        let isChanged = Mutex(false)
        // Only the first check after the change fails: it is that of the connection that waits.
        let isCurrent: @Sendable () -> Bool = {
            isChanged.withLock { isChanged in
                defer { isChanged = false }
                return !isChanged
            }
        }
        try await withTunnel(to: server, isCurrent: isCurrent) { echo, _ in
            let number = try await prepare(server, echo)
            isChanged.withLock { $0 = true }
            try await echo()
            #expect(!server.notes.contains("\(number) two"))
        }
    }

    @Test func `streams one after another leave one connection in advance`() async throws {
        let server = Server()
        try await withTunnel(to: server) { echo, listener in
            for _ in 0..<40 { try await echo() }
            try await eventually("the streams have ended") { listener.openConnections <= 1 }
        }
    }
}
