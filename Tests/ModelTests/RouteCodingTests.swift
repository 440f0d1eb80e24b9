import FoundationEssentials
import Model
import Testing

@Suite struct RouteCodingTests {
    private func text(_ route: Route) throws -> String {
        String(decoding: try JSONCoding.encoder().encode(route), as: UTF8.self)
    }

    @Test func `only an inbound route is marked as inbound in JSON`() throws {
        let machine = SanitizedText("10.0.0.2")
        let inbound = Route.network(NetworkRoute(address: "10.0.0.2", port: 5_000, machine: machine, isInbound: true))
        let announced = Route.network(NetworkRoute(address: "10.0.0.2", port: 5_000, machine: machine))

        #expect(
            try text(inbound)
                == #"{"address":"10.0.0.2","host":"10.0.0.2","inbound":true,"interfaceIndex":0,"port":5000,"via":"network"}"#
        )
        #expect(try !text(announced).contains("inbound"))
        for route in [inbound, announced] {
            #expect(try JSONCoding.decoder().decode(Route.self, from: Data(try text(route).utf8)) == route)
        }
        #expect([inbound.isInbound, announced.isInbound] == [true, false])
    }

    @Test func `an inbound route needs an approval for its address, also after a launch with another port`() throws {
        let machine = SanitizedText("10.0.0.2")
        let id = try #require(EndpointID("app"))
        func route(at port: UInt16, address: String = "10.0.0.2") -> NetworkRoute {
            NetworkRoute(address: address, port: port, machine: machine, isInbound: true)
        }
        let approval = Approval(
            id: "1",
            endpoint: id,
            approvedBy: .broker,
            approvedAt: Date(timeIntervalSince1970: 0),
            app: SanitizedText("debug-app"),
            machine: machine,
            addresses: [Approval.Address(route(at: 5_000))]
        )
        func decision(_ route: NetworkRoute, _ approval: Approval?) -> ApprovalPolicy.Decision {
            ApprovalPolicy.decision(
                on: EndpointRoute(.network(route), app: SanitizedText("debug-app"), approval: .pending),
                approval
            )
        }

        #expect(decision(route(at: 5_000), nil) == .pending)
        #expect(decision(route(at: 6_000), approval) == .approved)
        #expect(decision(route(at: 6_000, address: "10.0.0.3"), approval).approval == .changed)
    }
}
