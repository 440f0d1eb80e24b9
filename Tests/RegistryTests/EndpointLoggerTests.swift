import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

@Suite struct EndpointLoggerTests {
    private func endpoint(_ state: Endpoint.State, port: UInt16? = 4_000, version: String? = nil) -> Endpoint {
        Endpoint(
            id: EndpointID(app: SanitizedText("shop"), location: ""),
            kind: .appreveal,
            app: SanitizedText("com.example.shop"),
            name: SanitizedText("shop"),
            version: version.map { SanitizedText($0) },
            state: state,
            approval: .pending,
            routes: port.map { [EndpointRoute(.network(NetworkRoute(address: "192.0.2.1", port: $0)))] } ?? [],
            firstSeenAt: Date(timeIntervalSince1970: 0),
            lastSeenAt: nil
        )
    }

    private func message(_ before: Endpoint?, _ after: Endpoint) -> String? {
        EndpointLogger.message(for: after, before: before).map { "\($0)" }
    }

    @Test func `new, changed and moved endpoints are logged`() {
        #expect(message(nil, endpoint(.online)) == "endpoint new")
        #expect(message(endpoint(.online), endpoint(.suspect)) == "endpoint suspect")
        #expect(message(endpoint(.suspect), endpoint(.offline, port: nil)) == "endpoint offline")
        #expect(message(endpoint(.offline, port: nil), endpoint(.online)) == "endpoint online")
        #expect(message(endpoint(.online), endpoint(.blocked)) == "endpoint blocked")
        #expect(message(endpoint(.online), endpoint(.online, port: 4_001)) == "endpoint moved")
    }

    @Test func `a changed approval is logged with its cause`() {
        var moved = endpoint(.online, port: 4_001)
        moved.approval = .changed
        #expect(message(endpoint(.online), moved) == "endpoint moved to another host; approve it again to reach it")

        var other = endpoint(.online)
        other.approval = .changed
        other.routes[0].mismatch = SanitizedText("bank")
        #expect(
            message(endpoint(.online), other)
                == "another server answered at the address of the endpoint; approve it again to reach it"
        )
    }

    @Test func `changes without effect on the endpoint's state are not logged`() {
        #expect(message(endpoint(.online), endpoint(.online, version: "3.2.1")) == nil)
        #expect(message(endpoint(.offline, port: nil), endpoint(.offline, port: nil)) == nil)
    }
}
