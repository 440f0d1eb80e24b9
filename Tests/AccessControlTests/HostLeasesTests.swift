import FoundationEssentials
import Model
import Samples
import Synchronization
import TestSupport
import Testing

@testable import AccessControl

/// Leases of endpoints of other hosts.
@Suite struct HostLeasesTests {
    /// The broker of another host with at most one lease.
    private final class OtherHost: HostLeases {
        private let held: Mutex<Lease?>
        let ended = Mutex<[String]>([])

        init(_ lease: Lease?) { held = Mutex(lease) }

        func take(_ spec: LeaseSpec, on host: HostName, for principal: Principal) async throws -> Lease {
            throw TestSupportError("no lease is requested")
        }

        func end(_ id: String, on host: HostName, for principal: Principal) async throws {
            ended.withLock { $0.append("\(id) \(host)") }
        }

        func list(on host: HostName, for principal: Principal) async throws -> [Lease] { [] }

        func lease(of endpoint: EndpointID, on host: HostName, for principal: Principal) async throws -> Lease? {
            held.withLock { $0 }
        }
    }

    @Test(arguments: [(true, ["l3 lab2"]), (false, [])])
    func `an own lease at another host ends without a claim in the registry too`(
        isOwn: Bool,
        ended: [String]
    ) async throws {
        let host = OtherHost(.sample("l3", isOwn: isOwn))
        let service = LeaseService(hosts: host)
        let shop = Fixture.endpoint("com.example.shop").on("lab2")

        await service.release(shop, by: Fixture.grantee("a"))

        #expect(host.ended.withLock { $0 } == ended)
    }
}
