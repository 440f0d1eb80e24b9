import Model
import Registry
import Synchronization
import TestSupport
import Testing

@testable import Agents
@testable import Apps

/// `endpoint_wait`, and the changes that subscribers get.
@Suite struct BrokerWaitTests {
    @Test func `a state that is already reached ends the wait at once`() async throws {
        let fixture = BrokerFixture()
        let id = try await fixture.addEndpoint()

        let result = try await fixture.call("endpoint_wait", ["endpoint": "shop"])

        #expect(result.structure?["event"] == "online")
        #expect(result.structure?["endpoint"]?["id"] == .string(id.text))
    }

    @Test func `only a new launch counts as a restart`() async throws {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()

        async let waited = fixture.call("endpoint_wait", ["endpoint": "shop", "event": "restarted"])
        await fixture.clock.waitForSleepers(2)
        try await fixture.addEndpoint("com.example.bank", on: "pixel.local")
        try await fixture.addEndpoint(txt: ["auth=session-token", "more=1"])
        try await fixture.addEndpoint(port: 4_100)

        #expect(try await waited.structure?["event"] == "restarted")
    }

    @Test func `a wait that expires returns a timeout, not an error`() async throws {
        let fixture = BrokerFixture()

        async let waited = fixture.call("endpoint_wait", ["endpoint": "shop", "timeoutSeconds": 20])
        await fixture.clock.waitForSleepers(2)
        fixture.clock.advance(by: .seconds(20))

        let result = try await waited
        #expect(!result.isError && result.structure == ["event": "timeout"])
    }

    @Test func `a wait for a short name reports the approved endpoint, and an unapproved one only by its ID`()
        async throws
    {
        let fixture = BrokerFixture()
        let stranger = try await fixture.addEndpoint("com.example.shop.a", on: "evil.local")
        let shop = try await fixture.addEndpoint()
        fixture.approvals.state.withLock { $0.unapproved = [stranger] }

        let short = try await fixture.call("endpoint_wait", ["endpoint": "shop"])
        let full = try await fixture.call("endpoint_wait", ["endpoint": .string(stranger.text)])

        #expect(short.structure?["endpoint"]?["id"] == .string(shop.text))
        #expect(full.structure?["endpoint"]?["id"] == .string(stranger.text))
    }

    @Test func `an event of an unapproved endpoint does not end a wait for an approved one`() async throws {
        let fixture = BrokerFixture()
        let stranger = try await fixture.addEndpoint("com.example.shop.a", on: "evil.local")
        let shop = try await fixture.addEndpoint()
        fixture.approvals.state.withLock { $0.unapproved = [stranger] }

        async let waited = fixture.call("endpoint_wait", ["endpoint": "shop", "event": "restarted"])
        await fixture.clock.waitForSleepers(2)
        try await fixture.addEndpoint("com.example.shop.a", on: "evil.local", port: 4_200)
        try await fixture.addEndpoint(port: 4_100)

        #expect(try await waited.structure?["endpoint"]?["id"] == .string(shop.text))
    }

    @Test func `a text that matches several approved endpoints is an error before and during a wait`() async throws {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()
        async let waited = fixture.call("endpoint_wait", ["endpoint": "com.example", "event": "restarted"])
        await fixture.clock.waitForSleepers(2)
        try await fixture.addEndpoint("com.example.bank", on: "pixel.local")

        let during = try await waited
        let before = try await fixture.call("endpoint_wait", ["endpoint": "com.example"])

        for result in [during, before] {
            #expect(result.isError && result.text.contains("matches 2 endpoints, say which"), "\(result.text)")
        }
    }

    @Test func `a wait ignores endpoints that the principal may not see`() async throws {
        let fixture = BrokerFixture()
        let principal = BrokerFixture.grant([.registryRead], on: .bundles(["com.example.bank"]))

        async let waited = fixture.call(
            "endpoint_wait",
            ["endpoint": "com.example", "timeoutSeconds": 5],
            of: principal
        )
        await fixture.clock.waitForSleepers(2)
        try await fixture.addEndpoint()
        fixture.clock.advance(by: .seconds(5))

        #expect(try await waited.structure?["event"] == "timeout")
    }

    @Test func `a listed app that does not answer is offline, and online as soon as it answers again`()
        async throws
    {
        let fixture = BrokerFixture()
        let id = try await fixture.addEndpoint()
        fixture.probe.set(false)

        async let waited = fixture.call("endpoint_wait", ["endpoint": "shop", "timeoutSeconds": 20])
        for _ in 0..<4 {
            await fixture.clock.waitForSleepers(2)
            fixture.clock.advance(by: EndpointWaitTool.probeInterval)
        }
        await fixture.clock.waitForSleepers(2)
        let before = try await fixture.registry.endpoint(id).state
        fixture.probe.set(true)
        fixture.clock.advance(by: EndpointWaitTool.probeInterval)

        #expect(before == .offline)
        #expect(try await waited.structure?["event"] == "online")
    }

    @Test func `an app that exits is offline within three probes`() async throws {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()
        fixture.probe.set(false)

        async let waited = fixture.call("endpoint_wait", ["endpoint": "shop", "event": "offline"])
        for _ in 0..<2 {
            await fixture.clock.waitForSleepers(2)
            fixture.clock.advance(by: EndpointWaitTool.probeInterval)
        }

        #expect(try await waited.structure?["event"] == "offline")
    }

    @Test func `an app that was offline and is online again has restarted`() async throws {
        let fixture = BrokerFixture()
        try await fixture.addEndpoint()
        fixture.probe.set(false)

        async let waited = fixture.call("endpoint_wait", ["endpoint": "shop", "event": "restarted"])
        await fixture.clock.waitForSleepers(2)
        fixture.probe.set(true)
        fixture.clock.advance(by: EndpointWaitTool.probeInterval)

        #expect(try await waited.structure?["event"] == "restarted")
    }

    @Test func `a wait probes only approved endpoints that match`() async throws {
        let fixture = BrokerFixture()
        let id = try await fixture.addEndpoint()
        let stranger = try await fixture.addEndpoint(on: "evil.local")
        try await fixture.addEndpoint("com.example.bank", on: "pixel.local")
        fixture.approvals.state.withLock { $0.unapproved = [stranger] }

        _ = try await fixture.call("endpoint_wait", ["endpoint": "shop"])

        #expect(fixture.probe.asked == [id])
    }

    @Test func `a subscriber gets only changes that it may see`() async throws {
        let fixture = BrokerFixture()
        let id = try await fixture.addEndpoint()
        var batch = ChangeCoalescer.Batch()
        batch.devicesChanged = true
        batch.record(EndpointChange(revision: 1, kind: .changed, endpoint: try await fixture.registry.endpoint(id)))

        #expect(batch.changes(for: BrokerFixture.grant([.registryRead], on: .bundles(["other"]))) == [])
        #expect(batch.changes(for: BrokerFixture.grant([.endpointCall])) == [])
        #expect(
            batch.changes(for: BrokerFixture.grant([.registryRead], on: .endpoints([id])))
                == [.resource("patchbay://endpoints"), .resource("patchbay://endpoint/\(id)")]
        )
    }

    @Test func `many changes of one endpoint are published once`() async throws {
        let fixture = BrokerFixture()
        let id = try await fixture.addEndpoint()
        let (_, changes) = await fixture.registry.changes()
        for port in 4_001...4_010 { try await fixture.addEndpoint(port: UInt16(port)) }
        await fixture.registry.finish()
        var batch = ChangeCoalescer.Batch()

        for await change in changes { batch.record(change) }

        #expect(
            batch.changes(for: BrokerFixture.owner)
                == [.resource("patchbay://endpoints"), .resource("patchbay://endpoint/\(id)")]
        )
    }

    @Test func `changes are published 250 ms after the first one`() async throws {
        let fixture = BrokerFixture()
        var everything = fixture.handler.changes(for: BrokerFixture.owner).makeAsyncIterator()

        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await fixture.handler.run() }
            for await _ in fixture.followed.stream { break }
            let id = try await fixture.addEndpoint()
            await fixture.clock.waitForSleeper()
            fixture.clock.advance(by: ChangeCoalescer.interval)

            #expect(await everything.next() == .resources)
            #expect(await everything.next() == .resource("patchbay://endpoints"))
            #expect(await everything.next() == .resource("patchbay://endpoint/\(id)"))

            // The first list is the current state; the second one is a change.
            fixture.deviceLists.continuation.yield([])
            fixture.deviceLists.continuation.yield([])
            await fixture.clock.waitForSleeper()
            fixture.clock.advance(by: ChangeCoalescer.interval)

            #expect(await everything.next() == .resource("patchbay://devices"))
            group.cancelAll()
        }
    }
}
