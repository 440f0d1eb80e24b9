import Foundation
import Model
import Samples
import Testing

@testable import Apps

@Suite struct DebuggerDialerTests {
    private func debugger(
        _ id: String,
        named name: String = "Mac",
        kind: EndpointKind = .debug,
        via: String? = nil,
        isApproved: Bool = false,
        isInbound: Bool = false
    ) throws -> Endpoint {
        let host = SanitizedText("\(id).local")
        let route = NetworkRoute(
            address: "10.0.0.1",
            port: UInt16(5_000 + id.count),
            machine: host,
            isInbound: isInbound
        )
        var txt = TXTRecord()
        if let via { txt.set("via", to: Array(via.utf8)) }
        return Endpoint(
            id: try #require(EndpointID(id)),
            kind: kind,
            app: SanitizedText(name),
            name: SanitizedText(name),
            state: .online,
            approval: isApproved ? .approved : .pending,
            routes: [EndpointRoute(.network(route), approval: isApproved ? .approved : .pending)],
            txt: txt,
            firstSeenAt: Date(),
            lastSeenAt: nil
        )
    }

    private func routes(among endpoints: [Endpoint]) throws -> [Route] {
        try DebuggerDialer.routes(toDebugger: "Mac", among: endpoints)
    }

    @Test func `the only debugger with the name needs no approval`() throws {
        let mac = try debugger("mac")

        #expect(try routes(among: [debugger("other", named: "mac"), mac]) == mac.routes.map(\.route))
    }

    @Test func `of two debuggers with the name only an approved one is used`() throws {
        let failure = #expect(throws: DialError.self) { try routes(among: [debugger("mac"), debugger("thief")]) }
        #expect(failure?.reason == .forbidden)
        #expect(failure?.description.contains("patchbay approve mac") == true)

        let approved = try debugger("mac", isApproved: true)
        #expect(try routes(among: [approved, debugger("thief")]) == approved.routes.map(\.route))
    }

    @Test func `brokers, connected apps and other kinds of endpoints are no debuggers`() throws {
        let others = [
            try debugger("broker", via: "patchbay"), try debugger("app", isInbound: true),
            try debugger("server", kind: .mcp),
        ]
        let failure = #expect(throws: DialError.self) { try routes(among: others) }
        #expect(failure?.reason == .noRoute)
    }
}
