import Glibc
import Model
import TestSupport
import Synchronization
import Testing

@testable import AccessControl

/// What does not wait while the disk takes its time.
@Suite(.timeLimit(.minutes(1)))
struct BusyDiskTests {
    /// A disk that holds on to the commits that are made while it is slow.
    private final class Disk: Sendable {
        let isSlow = Mutex(false)
        let (reached, reach) = AsyncStream.makeStream(of: Void.self)
        private let reader: CInt
        private let writer: CInt

        init() {
            var ends: [CInt] = [0, 0]
            precondition(pipe(&ends) == 0)
            (reader, writer) = (ends[0], ends[1])
        }

        deinit {
            close(reader)
            close(writer)
        }

        func take(_ point: FailurePoint) {
            guard point == .beforeCommit, isSlow.withLock({ $0 }) else { return }
            reach.finish()
            var byte: UInt8 = 0
            _ = read(reader, &byte, 1)
        }

        func goOn() {
            isSlow.withLock { $0 = false }
            write(writer, "x", 1)
        }
    }

    @Test func `a right token lets in, and something is opened under its grant, while another commit waits`()
        async throws
    {
        try await withScratchFolder { scratch in
            let disk = Disk()
            let store = try Bench.store(in: scratch) { disk.take($0) }
            let (grant, token) = try await store.grant()
            disk.isSlow.withLock { $0 = true }
            async let invited = store.invite(InviteTerms(Bench.reader), by: Bench.owner, from: Bench.socket)
            for await _ in disk.reached {}

            #expect(try await store.authenticate(token, from: Bench.loopback).id == grant.id)
            store.close(try store.open(under: grant.id) {})

            disk.goOn()
            _ = try await invited
            #expect(try await store.authenticate(token, from: Bench.loopback).id == grant.id)
        }
    }

    @Test func `a grant that is being ended lets nobody in, though the disk has not heard of it`() async throws {
        try await withScratchFolder { scratch in
            let disk = Disk()
            let store = try Bench.store(in: scratch) { disk.take($0) }
            let (grant, _) = try await store.grant()
            let cut = AsyncStream.makeStream(of: Void.self)
            _ = try store.open(under: grant.id) { cut.continuation.finish() }
            disk.isSlow.withLock { $0 = true }
            async let ended = store.revoke(.one(grant.id), by: Bench.owner, from: Bench.socket)
            for await _ in disk.reached {}

            for await _ in cut.stream {}
            #expect(throws: AccessError.refused) { try store.open(under: grant.id) {} }

            disk.goOn()
            #expect(try await ended == [grant.id])
        }
    }

    @Test func `uses that follow one another wake nobody for each`() {
        var uses = GrantSessions()
        let first = uses.open(of: "a", signal: {}, finish: {})
        #expect(!uses.isWatched)

        let isWatched = uses.watch()
        uses.close(first)
        uses.close(uses.open(of: "a", signal: {}, finish: {}))
        #expect(isWatched && uses.isWatched)

        let isWatchedStill = uses.watch()
        let isWatchedLater = uses.watch()
        #expect(isWatchedStill, "one has lived since the last look")
        #expect(!isWatchedLater)
    }
}
