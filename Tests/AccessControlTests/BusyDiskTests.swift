import Glibc
import Model
import Samples
import Synchronization
import TestSupport
import Testing

@testable import AccessControl

/// Operations that do not wait for a slow disk.
@Suite(.timeLimit(.minutes(1)), .scratchFolder)
struct BusyDiskTests {
    private let scratch = ScratchFolder.current

    /// A disk that blocks commits at one point while it is slow.
    private final class Disk: Sendable {
        private let point: FailurePoint
        let isSlow = Mutex(false)
        let (reached, reach) = AsyncStream.makeStream(of: Void.self)
        private let reader: CInt
        private let writer: CInt

        init(at point: FailurePoint = .beforeCommit) {
            self.point = point
            var ends: [CInt] = [0, 0]
            precondition(pipe(&ends) == 0)
            (reader, writer) = (ends[0], ends[1])
        }

        deinit {
            close(reader)
            close(writer)
        }

        func block(_ reached: FailurePoint) {
            guard reached == point, isSlow.withLock({ $0 }) else { return }
            reach.finish()
            var byte: UInt8 = 0
            _ = read(reader, &byte, 1)
        }

        func resume() {
            isSlow.withLock { $0 = false }
            write(writer, "x", 1)
        }
    }

    @Test func `a valid token is accepted and a session is registered while another commit waits`()
        async throws
    {
        let disk = Disk()
        let store = try Fixture.store(in: scratch) { disk.block($0) }
        let (grant, token) = try await store.grant()
        disk.isSlow.withLock { $0 = true }
        async let invited = store.invites.create()
        for await _ in disk.reached {}

        #expect(try await store.grants.authenticate(token).id == grant.id)
        store.live.unregister(try store.live.register(under: grant.id) {})

        disk.resume()
        _ = try await invited
        #expect(try await store.grants.authenticate(token).id == grant.id)
    }

    @Test func `a secret may be sent from the moment in which it is stored`() async throws {
        let disk = Disk(at: .beforeReply)
        let launches = ObservedLaunches()
        let store = try Fixture.store(in: scratch, launches: launches) { disk.block($0) }
        let shop = Endpoint.sample(routes: [.usb(port: 5_000)])
        launches.begin(LaunchObservation(), of: RoutePort(.usb(port: 5_000)))
        disk.isSlow.withLock { $0 = true }
        async let set: Void = store.secrets.set(EndpointSecret("abc"), of: shop)
        for await _ in disk.reached {}

        #expect(store.secrets.isUsable(for: shop))

        disk.resume()
        try await set
    }

    @Test func `a grant that is being revoked is rejected before the commit completes`() async throws {
        let disk = Disk()
        let store = try Fixture.store(in: scratch) { disk.block($0) }
        let (grant, _) = try await store.grant()
        let closed = AsyncStream.makeStream(of: Void.self)
        _ = try store.live.register(under: grant.id) { closed.continuation.finish() }
        disk.isSlow.withLock { $0 = true }
        async let ended = store.grants.revoke(grant.id)
        for await _ in disk.reached {}

        for await _ in closed.stream {}
        #expect(throws: AccessError.refused) { try store.live.register(under: grant.id) {} }

        disk.resume()
        #expect(try await ended == [grant.id])
    }

    @Test func `short consecutive sessions do not wake the service each time`() {
        var sessions = GrantSessions()
        let first = sessions.register(under: "a", signal: {}, finish: {})
        #expect(!sessions.isPolled)

        let isPolled = sessions.updatePolling()
        sessions.remove(first)
        sessions.remove(sessions.register(under: "a", signal: {}, finish: {}))
        #expect(isPolled && sessions.isPolled)

        let isStillPolled = sessions.updatePolling()
        let isPolledLater = sessions.updatePolling()
        #expect(isStillPolled, "a session existed since the last update")
        #expect(!isPolledLater)
    }
}
