import AccessControl
import Model
import Samples
import Testing

@testable import Agents
@testable import Apps

@Suite struct PortForwardToolTests {
    @Test func `a port is forwarded to the app on loopback, and the tunnel is not persistent`() async throws {
        let fixture = BrokerFixture()
        let id = try await fixture.addEndpoint()

        let open = try await fixture.call("port_forward", ["action": "open", "endpoint": "shop", "localPort": 8_080])
        let list = try await fixture.call("port_forward", ["action": "list"])
        let wrong = try await fixture.call("port_forward", ["action": "close", "tunnel": "t9"])
        let close = try await fixture.call("port_forward", ["action": "close", "tunnel": "t1"])

        #expect(open.structure?["local"] == "127.0.0.1:43211")
        #expect(open.structure?["endpoint"] == .string(id.text))
        #expect(list.structure?["tunnels"]?.array?.count == 1)
        #expect(wrong.isError && wrong.text == "you have no tunnel \"t9\": action list shows your tunnels")
        #expect(close.structure?["closed"] == "t1")
        #expect(fixture.tunnels.opened.isEmpty)
    }

    @Test func `a grant that is limited to certain tools opens no tunnel, and is told the reason`() async throws {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()
        let reader = Principal.holder(of: "r", Set(Scope.allCases), tools: .readOnly)

        let result = try await fixture.call("port_forward", ["action": "open", "endpoint": "shop"], of: reader)

        #expect(result.isError)
        #expect(
            result.text == "your grant does not allow tunnel.open: tunnel.open would bypass the limit to read-only "
                + "tools, because it allows any call of an app; ask the person who invited you for a grant that does"
        )
        #expect(fixture.tunnels.opened.isEmpty)
    }

    @Test func `another port of the device can only be reached over USB`() async throws {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()

        let refused = try await fixture.call(
            "port_forward",
            ["action": "open", "endpoint": "shop", "remotePort": 9_876]
        )
        let same = try await fixture.call("port_forward", ["action": "open", "endpoint": "shop", "remotePort": 4_000])

        #expect(refused.isError && refused.text.contains("USB"))
        #expect(!same.isError)
    }
}
