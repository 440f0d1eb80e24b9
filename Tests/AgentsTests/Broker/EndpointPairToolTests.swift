import Model
import Synchronization
import Testing

@testable import Agents
@testable import Apps

@Suite struct EndpointPairToolTests {
    @Test func `pairing goes from approval to token to paired, and never returns the token`() async throws {
        let fixture = BrokerFixture()
        let id = try await fixture.addEndpoint()
        let token = String(repeating: "ab12", count: 16)
        fixture.approvals.state.withLock { $0.unapproved = [id] }
        func state(_ arguments: JSONObject = [:]) async throws -> JSON? {
            var all: JSONObject = ["endpoint": "shop"]
            for member in arguments.members { all[member.name] = member.value }
            let result = try await fixture.call("endpoint_pair", all)
            #expect(!JSON.object(result).text.contains(token))
            return result.structure?["state"]
        }

        #expect(try await state() == "needsApproval")
        let pending = try await fixture.call("endpoint_pair", ["endpoint": "shop"])
        #expect(pending.text.contains("patchbay approve \(id) --address 192.168.1.20"), "\(pending.text)")
        #expect(pending.text.contains("if iphone.local is the right device"), "\(pending.text)")
        fixture.approvals.state.withLock { $0.unapproved = [] }
        #expect(try await state() == "needsCode")
        let line = "[AppReveal] Session URL: http://127.0.0.1:4000/?appreveal_session_token=\(token)&x=1"
        fixture.apps.secret.withLock { $0 = token }
        #expect(try await state(["code": .string(line)]) == "paired")
        #expect(fixture.approvals.state.withLock { $0.held[id] } == token)
        // The app logs the token before it advertises that port.
        #expect(fixture.approvals.state.withLock { $0.ports[id] } == 4_000)
        #expect(try await state() == "paired")
    }

    @Test func `an agent does not ask again for an app that an owner denied`() async throws {
        let fixture = BrokerFixture()
        let id = try await fixture.addEndpoint()
        fixture.approvals.state.withLock { $0.denied = [id] }

        let pairing = try await fixture.call("endpoint_pair", ["endpoint": "shop"])
        #expect(
            pairing.structure?["state"] == "denied" && !pairing.text.contains("patchbay approve"),
            "\(pairing.text)"
        )
        let call = try await fixture.call("endpoint_call", ["endpoint": "shop", "name": "tap"])
        #expect(call.isError && call.text.hasSuffix("which an owner has denied"), "\(call.text)")
        #expect(fixture.apps.calls.isEmpty)
    }

    @Test func `a token that the app rejects does not replace the stored one`() async throws {
        let fixture = BrokerFixture()
        let id = try await fixture.addEndpoint()
        fixture.approvals.state.withLock { $0.held[id] = "right" }
        fixture.apps.secret.withLock { $0 = "right" }

        let wrong = try await fixture.call("endpoint_pair", ["endpoint": "shop", "code": "wrong"])
        let blank = try await fixture.call("endpoint_pair", ["endpoint": "shop", "code": "two words"])

        #expect(wrong.structure?["state"] == "needsCode" && wrong.text.contains("rejects that token"))
        #expect(blank.isError)
        #expect(fixture.approvals.state.withLock { $0.held[id] } == "right")
        #expect(
            try await fixture.call("endpoint_pair", ["endpoint": "shop", "code": "right"]).structure?["state"]
                == "paired"
        )
    }

    @Test func `an app's own response overrides its advertisement`() async throws {
        let fixture = BrokerFixture()
        let id = try await fixture.addEndpoint(txt: [])
        let (silent, closed) = (try await fixture.call("endpoint_pair", ["endpoint": "shop"]), false)
        fixture.apps.accessResults.withLock { $0[id] = closed }

        let asked = try await fixture.call("endpoint_pair", ["endpoint": "shop"])
        let list = try await fixture.call("endpoint_list")
        let stranger = try await fixture.call(
            "endpoint_pair",
            ["endpoint": "shop"],
            of: BrokerFixture.grant([.registryRead])
        )
        fixture.apps.accessResults.withLock { $0[id] = true }
        let open = try await fixture.call("endpoint_pair", ["endpoint": "shop"])

        #expect(silent.structure?["state"] == "paired" && open.structure?["state"] == "paired")
        #expect(asked.structure?["state"] == "needsCode" && list.text.contains("needs token"))
        #expect(stranger.structure?["state"] == "denied")
    }

    @Test func `a token without a port for an unreachable app is stored for the next launch`() async throws {
        let fixture = BrokerFixture()
        let id = try await fixture.addEndpoint()

        let bare = try await fixture.call("endpoint_pair", ["endpoint": "shop", "code": "abc"])
        #expect(bare.structure?["state"] == "kept" && bare.text.contains("endpoint_wait"))
        #expect(fixture.approvals.state.withLock { $0.unseen } == [id])

        fixture.apps.secret.withLock { $0 = "def" }
        fixture.approvals.state.withLock { $0.unseen = [] }
        let taken = try await fixture.call("endpoint_pair", ["endpoint": "shop", "code": "def"])
        #expect(taken.structure?["state"] == "paired" && fixture.approvals.state.withLock { $0.unseen.isEmpty })
    }

    @Test func `an app that requires no token is paired`() async throws {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint(txt: [])

        #expect(try await fixture.call("endpoint_pair", ["endpoint": "shop"]).structure?["state"] == "paired")
    }

    @Test func `a code for an app that requires no token is not stored`() async throws {
        let fixture = BrokerFixture()
        let id = try await fixture.addEndpoint(txt: [])
        _ = fixture.apps.open.withLock { $0.insert(id) }
        fixture.apps.secret.withLock { $0 = "invented" }

        let result = try await fixture.call("endpoint_pair", ["endpoint": "shop", "code": "invented"])

        #expect(result.structure?["state"] == "paired" && result.text.contains("was not stored"))
        #expect(fixture.approvals.state.withLock { $0.held.isEmpty })
    }

    @Test func `a token is accepted only from principals with the scope secret.use`() async throws {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()

        let result = try await fixture.call(
            "endpoint_pair",
            ["endpoint": "shop", "code": "abc"],
            of: BrokerFixture.grant([.registryRead])
        )

        #expect(result.structure?["state"] == "denied")
        #expect(fixture.approvals.state.withLock { $0.held.isEmpty })
    }

    @Test func `an invalid token is rejected with the reason, and not repeated`() async throws {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()

        let result = try await fixture.call("endpoint_pair", ["endpoint": "shop", "code": "sécret"])

        #expect(result.isError && !result.text.contains("sécret"))
    }
}
