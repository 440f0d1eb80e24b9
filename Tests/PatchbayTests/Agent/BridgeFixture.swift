import Client
import FoundationEssentials
import Glibc
import Model
import Synchronization
import Testing

@testable import patchbay

/// An `MCPStdioBridge` between two pipes and a scripted server.
final class BridgeFixture: Sendable {
    let server: FakeMCPServer
    private let feed: CInt
    private let lines: AsyncStream<String>
    private let logged = Mutex<[String]>([])

    private init(server: FakeMCPServer, feed: CInt, lines: AsyncStream<String>) {
        (self.server, self.feed, self.lines) = (server, feed, lines)
    }

    /// The messages on standard error.
    var messages: [String] { logged.withLock { $0 } }

    /// Runs the body with a bridge; the bridge's input ends with the body.
    static func with(
        at subject: MCPSubject = .broker,
        isOpen: Bool = true,
        _ answer: @escaping @Sendable (String) -> FakeMCPServer.Response,
        _ body: @Sendable @escaping (BridgeFixture) async throws -> Void
    ) async throws {
        signal(SIGPIPE, SIG_IGN)
        let server = FakeMCPServer(answer)
        if isOpen { try await server.open() }
        let (input, feed) = try pipes()
        let (result, output) = try pipes()
        let (lines, sink) = AsyncStream.makeStream(of: String.self)
        BlockingThread.start {
            var pending: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = Glibc.read(result, &buffer, buffer.count)
                guard count > 0 else { break }
                pending += buffer.prefix(count)
                while let end = pending.firstIndex(of: 10) {
                    sink.yield(String(decoding: pending[..<end], as: UTF8.self))
                    pending.removeSubrange(...end)
                }
            }
            sink.finish()
        }
        let fixture = BridgeFixture(server: server, feed: feed, lines: lines)
        let bridge = MCPStdioBridge(
            resolver: TargetResolver(subject) { PatchbayClient(address: .unix(path: server.path)) },
            output: LineWriter(output),
            log: { text in fixture.logged.withLock { $0.append(text) } }
        )
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await bridge.run(LineInput(input)) }
                group.addTask {
                    defer { close(feed) }
                    try await body(fixture)
                }
                try await group.waitForAll()
            }
        } catch {
            try await server.shut()
            throw error
        }
        close(output)
        close(input)
        try await server.shut()
    }

    func write(_ lines: String...) {
        for line in lines {
            let bytes = Array((line + "\n").utf8)
            #expect(Glibc.write(feed, bytes, bytes.count) == bytes.count)
        }
    }

    /// Returns the next lines of standard output; waits at most 10 s.
    func read(_ count: Int) async throws -> [JSON] {
        try await withThrowingTaskGroup(of: [JSON].self) { group in
            group.addTask { [lines] in
                var read: [JSON] = []
                for await line in lines {
                    read.append(try JSON(parsing: line))
                    if read.count == count { break }
                }
                return read
            }
            group.addTask {
                try await ContinuousClock().sleep(for: .seconds(10))
                return []
            }
            defer { group.cancelAll() }
            return try await group.next() ?? []
        }
    }

    /// Waits until the server has received a number of requests.
    func waitForRequests(_ count: Int) async throws {
        for _ in 0..<500 where server.requests.count < count {
            try await ContinuousClock().sleep(for: .milliseconds(10))
        }
        #expect(server.requests.count >= count)
    }

    private static func pipes() throws -> (CInt, CInt) {
        var ends: [CInt] = [0, 0]
        try #require(pipe(&ends) == 0)
        return (ends[0], ends[1])
    }
}
