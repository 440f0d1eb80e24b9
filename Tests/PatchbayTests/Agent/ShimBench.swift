import Client
import FoundationEssentials
import Glibc
import JSON
import Synchronization
import Testing

@testable import patchbay

/// A shim between two pipes, in front of a door that a test wrote.
final class ShimBench: Sendable {
    let door: FakeDoor
    private let feed: CInt
    private let lines: AsyncStream<String>
    private let notes = Mutex<[String]>([])

    private init(door: FakeDoor, feed: CInt, lines: AsyncStream<String>) {
        (self.door, self.feed, self.lines) = (door, feed, lines)
    }

    /// What it said on standard error.
    var said: [String] { notes.withLock { $0 } }

    /// Runs the body beside a shim; its input ends with the body.
    static func with(
        at place: MCPTarget = .broker,
        isOpen: Bool = true,
        _ answer: @escaping @Sendable (String) -> FakeDoor.Answer,
        _ body: @Sendable @escaping (ShimBench) async throws -> Void
    ) async throws {
        signal(SIGPIPE, SIG_IGN)
        let door = FakeDoor(answer)
        if isOpen { try await door.open() }
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
        let bench = ShimBench(door: door, feed: feed, lines: lines)
        let shim = MCPStdioBridge(
            door: place,
            client: PatchbayClient(socketPath: door.path),
            output: LineWriter(output),
            note: { text in bench.notes.withLock { $0.append(text) } }
        )
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await shim.run(LineReader(input)) }
                group.addTask {
                    defer { close(feed) }
                    try await body(bench)
                }
                try await group.waitForAll()
            }
        } catch {
            try await door.shut()
            throw error
        }
        close(output)
        close(input)
        try await door.shut()
    }

    func write(_ lines: String...) {
        for line in lines {
            let bytes = Array((line + "\n").utf8)
            #expect(Glibc.write(feed, bytes, bytes.count) == bytes.count)
        }
    }

    /// The next so many lines of standard output, within ten seconds.
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

    /// Waits until the door has heard so many requests.
    func heard(_ count: Int) async throws {
        for _ in 0..<500 where door.requests.count < count { try await ContinuousClock().sleep(for: .milliseconds(10)) }
        #expect(door.requests.count >= count)
    }

    private static func pipes() throws -> (CInt, CInt) {
        var ends: [CInt] = [0, 0]
        try #require(pipe(&ends) == 0)
        return (ends[0], ends[1])
    }
}
