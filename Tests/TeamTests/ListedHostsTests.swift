import Model
import Samples
import Synchronization
import Testing

@testable import Team
@testable import Registry

/// The list of the other hosts of the team.
@Suite struct ListedHostsTests {
    /// Lets two tasks go on at the same time.
    private final class Barrier: Sendable {
        private let arrived = Atomic(0)

        func wait() async {
            arrived.add(1, ordering: .sequentiallyConsistent)
            while arrived.load(ordering: .sequentiallyConsistent) < 2 { await Task.yield() }
        }
    }

    private static func lists(of hosts: ListedHosts, after barrier: Barrier) async -> AsyncStream<[HostStatus]> {
        await barrier.wait()
        return hosts.lists()
    }

    @Test func `a stream of lists that begins during a change ends with the new list`() async throws {
        let new = [HostStatus(name: HostName("lab2"))]
        let own = try Values.host("lab1")
        for _ in 0..<5_000 {
            let (hosts, barrier) = (ListedHosts(own: own), Barrier())
            async let stream = Self.lists(of: hosts, after: barrier)
            await barrier.wait()
            #expect(hosts.setOthers(new))
            let lists = await stream
            hosts.finish()

            let last = await lists.reduce(into: [HostStatus]()) { $0 = $1 }
            try #require(last == new)
        }
    }
}
