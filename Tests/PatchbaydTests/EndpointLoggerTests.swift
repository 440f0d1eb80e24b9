import FoundationEssentials
import Model
import Testing

@testable import patchbayd

@Suite struct EndpointLoggerTests {
    private func endpoint(_ state: Endpoint.State, port: UInt16? = 4_000, version: String? = nil) -> Endpoint {
        Endpoint(
            id: EndpointID(app: SanitizedText("shop"), place: ""),
            kind: .appreveal,
            app: SanitizedText("com.example.shop"),
            name: SanitizedText("shop"),
            version: version.map { SanitizedText($0) },
            state: state,
            approval: .discovered,
            routes: port.map { [EndpointRoute(.lan(LANRoute(address: "192.0.2.1", port: $0)))] } ?? [],
            since: Date(timeIntervalSince1970: 0),
            lastSeen: nil
        )
    }

    private func news(_ before: Endpoint?, _ after: Endpoint) -> String? {
        EndpointLogger.news(of: after, before: before).map { "\($0)" }
    }

    @Test func `an operator is told what is new, in another state, or elsewhere`() {
        #expect(news(nil, endpoint(.online)) == "endpoint new")
        #expect(news(endpoint(.online), endpoint(.suspect)) == "endpoint suspect")
        #expect(news(endpoint(.suspect), endpoint(.offline, port: nil)) == "endpoint offline")
        #expect(news(endpoint(.offline, port: nil), endpoint(.online)) == "endpoint online")
        #expect(news(endpoint(.online), endpoint(.blocked)) == "endpoint blocked")
        #expect(news(endpoint(.online), endpoint(.online, port: 4_001)) == "endpoint moved")
    }

    @Test func `an operator is not told what only the list's readers want to know`() {
        #expect(news(endpoint(.online), endpoint(.online, version: "3.2.1")) == nil)
        #expect(news(endpoint(.offline, port: nil), endpoint(.offline, port: nil)) == nil)
    }
}
