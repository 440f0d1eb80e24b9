import AccessControl
import Apps
import Client
import FoundationEssentials
import Model
import NIOCore
import Registry
import Samples
import Synchronization
import Testing

@testable import API
@testable import Team

/// Leases of endpoints of other hosts: the texts for their clients, and the lease of one endpoint.
@Suite struct TeamLeaseTextTests {
    /// The broker of lab3. Every request gets the same response.
    private final class Host: HostConnector {
        private let status: Int
        private let body: String
        private let sent = Mutex<[OutgoingRequest]>([])

        init(_ status: Int, _ body: some Encodable) throws {
            self.status = status
            self.body = String(decoding: try JSONCoding.encoder().encode(body), as: UTF8.self)
        }

        var targets: [String] { sent.withLock { $0.map(\.target) } }

        func send(
            _ request: OutgoingRequest,
            to host: HostName,
            within timeout: Duration
        ) async throws -> any HostResponse {
            sent.withLock { $0.append(request) }
            return Answer(status, body)
        }
    }

    private final class Answer: HostResponse {
        let status: Int
        let headers: [(name: String, value: String)]
        private let body: Mutex<ByteBuffer?>

        init(_ status: Int, _ body: String, type: String = "application/json") {
            self.status = status
            headers = [("Content-Type", type)]
            self.body = Mutex(ByteBuffer(string: body))
        }

        func next() async throws -> ByteBuffer? {
            body.withLock { body in
                defer { body = nil }
                return body
            }
        }

        func close() {}
    }

    private let lab3: HostName
    private let shop: Endpoint
    /// A user of lab1, as the broker of lab3 sees this client.
    private let member: Principal
    private let leases = LeaseService()

    init() throws {
        let lab1: HostName = "lab1"
        lab3 = HostName("lab3")
        shop = Endpoint.sample(kind: .mcp)
        let caller = TeamCaller(
            holder: "uid:0",
            name: SanitizedText("user 0"),
            isAgent: false,
            permissions: Permissions([.registryRead, .endpointCall], on: .all)
        )
        member = Principal(
            .member(MemberClient(host: lab1, caller: caller)),
            source: .remote(address: "10.0.0.1"),
            actor: .member(host: lab1, client: caller.name),
            host: lab3
        )
    }

    @Test func `a refused lease names the endpoint as the client knows it`() async throws {
        _ = try await leases.take(shop, for: .broker, seconds: 60)
        let local = Principal(.localUser, source: .unix(uid: 7), actor: .anonymous, host: lab3)

        for (client, name) in [(member, "shop.lab3"), (local, "shop")] {
            let error = await #expect(throws: AccessError.self) {
                try await leases.take(shop, for: client, seconds: 60)
            }
            let problem = try #require(error?.problem)
            #expect(problem.code == .leased && problem.detail.hasPrefix("\(name) is leased to \"broker\" until "))
            #expect(problem.hint == "patchbay lease \(name) --wait 5m")
        }
    }

    @Test func `the end of another client's lease is refused without a hint to lease`() async throws {
        let lease = try await leases.take(shop, for: .broker, seconds: 60)

        let error = #expect(throws: AccessError.self) { try leases.end(lease.id, among: [shop], by: member) }

        #expect(error?.problem.code == .forbidden && error?.problem.detail.contains(": shop.lab3 is leased to") == true)
        #expect(error?.problem.hint == "an owner can end it: patchbay unlease shop.lab3")
    }

    @Test func `a refused call names the endpoint with its host, and its hint is for this broker`() async throws {
        _ = try await leases.take(shop, for: .broker, seconds: 60)
        let thrown = await #expect(throws: AccessError.self) { try await leases.take(shop, for: member, seconds: 60) }
        guard case .leased(let conflict)? = thrown else { return }
        let refusal = AppError.leased(conflict).problem(at: member.knownID(of: shop.id))

        let problem = await #expect(throws: Problem.self) {
            _ = try await TeamProxy(try Host(423, refusal)).broker(of: lab3, for: .broker).probe("shop")
        }

        let text = "on the host lab3: the call was not sent: shop.lab3 is leased to \"broker\" until "
        #expect(problem?.detail.hasPrefix(text) == true, "\(problem?.detail ?? "")")
        #expect(problem?.hint == "read-only tools work meanwhile; `patchbay lease shop.lab3 --wait 5m` waits for it")
    }

    @Test func `the lease of another host's endpoint without a claim is asked of its host`() async throws {
        let lease = try await leases.take(shop, for: .broker, seconds: 60)
        let host = try Host(200, ListResponse([lease]))
        let team = TeamLeases(leases, on: ListedHosts(own: "lab1"), proxy: TeamProxy(host))

        let found = try await team.lease(of: shop.on(lab3), for: .broker)

        #expect(found?.id == "l1.lab3" && found?.endpoint.text == "shop.lab3" && found?.isOwn == true)
        #expect(host.targets == ["/v1/leases?endpoint=shop"])
        #expect(try await team.lease(of: shop, for: .broker) == nil && host.targets.count == 1)
    }

    @Test(arguments: [true, false])
    func `an own lease at another host ends without a claim in the registry too`(isOwn: Bool) async throws {
        let lease = try await leases.take(shop, for: isOwn ? .broker : member, seconds: 60, wait: .zero, note: nil)
        let host = try Host(200, ListResponse(leases.held(among: [shop], for: .broker)))
        let team = TeamLeases(LeaseService(), on: ListedHosts(own: "lab1"), proxy: TeamProxy(host))

        await team.release(shop.on(lab3), by: .broker)

        let list = "/v1/leases?endpoint=shop"
        #expect(host.targets == (isOwn ? [list, "/v1/leases/\(lease.id)"] : [list]))
    }

    @Test func `the lease of an endpoint whose host does not answer is an error`() async throws {
        let host = try Host(503, Problem(.unavailable, "no"))
        let team = TeamLeases(leases, on: ListedHosts(own: "lab1"), proxy: TeamProxy(host))

        await #expect(throws: Problem.self) { _ = try await team.lease(of: shop.on(lab3), for: .broker) }
    }

    @Test func `a lease of a third host is not requested for a client of another host`() async throws {
        let host = try Host(200, ListResponse<Lease>([]))
        let team = TeamLeases(leases, on: ListedHosts(own: lab3), proxy: TeamProxy(host))
        let third = shop.on("lab2")

        await #expect(throws: RegistryError.noSuchEndpoint("shop.lab2")) {
            _ = try await team.take(third, for: member, seconds: 60, wait: .zero, note: nil, renewing: nil)
        }
        await #expect(throws: AccessError.self) { try await team.end("l1.lab2", among: [shop], by: member) }

        #expect(host.targets.isEmpty)
        let lease = try await leases.take(shop, for: member, seconds: 60)
        try await team.end("\(lease.id).lab3", among: [shop], by: member)
        #expect(leases.held(among: [shop], for: .broker).isEmpty)
    }

    @Test(arguments: ["", "l", "x1", "l1a", "l1/2"])
    func `only an ID that brokers give is sent to another host`(id: String) async throws {
        let host = try Host(200, ListResponse<Lease>([]))
        let team = TeamLeases(leases, on: ListedHosts(own: "lab1"), proxy: TeamProxy(host))

        await #expect(throws: Problem.self) {
            try await team.end("\(id).lab3", among: [], by: .broker)
        }

        #expect(host.targets.isEmpty)
    }
}
