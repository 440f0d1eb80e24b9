import JSON
import Model
import Registry
import Synchronization
import Testing

@testable import MCP

/// `endpoint_wait`, and what subscribers are told.
@Suite struct BrokerWaitTests {
    @Test func `what is so already is answered at once`() async throws {
        let bench = BrokerBench()
        let id = try await bench.see()

        let result = try await bench.call("endpoint_wait", ["endpoint": "shop"])

        #expect(result.structure?["event"] == "online")
        #expect(result.structure?["endpoint"]?["id"] == .string(id.text))
    }

    @Test func `a restart is another launch, and no other change`() async throws {
        let bench = BrokerBench()
        try await bench.see()

        async let waited = bench.call("endpoint_wait", ["endpoint": "shop", "event": "restarted"])
        await bench.clock.waitForSleepers(2)
        try await bench.see("com.example.bank", on: "pixel.local")
        try await bench.see(txt: ["auth=session-token", "more=1"])
        try await bench.see(port: 4_100)

        #expect(try await waited.structure?["event"] == "restarted")
    }

    @Test func `nothing within the time is a timeout, and no error`() async throws {
        let bench = BrokerBench()

        async let waited = bench.call("endpoint_wait", ["endpoint": "shop", "timeout_s": 20])
        await bench.clock.waitForSleepers(2)
        bench.clock.advance(by: .seconds(20))

        let result = try await waited
        #expect(!result.isError && result.structure == ["event": "timeout"])
    }

    @Test func `nobody is woken by what is not theirs`() async throws {
        let bench = BrokerBench()
        let caller = BrokerBench.grant([.registryRead], on: .bundles(["com.example.bank"]))

        async let waited = bench.call("endpoint_wait", ["endpoint": "com.example", "timeout_s": 5], of: caller)
        await bench.clock.waitForSleepers(2)
        try await bench.see()
        bench.clock.advance(by: .seconds(5))

        #expect(try await waited.structure?["event"] == "timeout")
    }

    @Test func `an app that is listed and does not answer is not online, and is as soon as it answers again`()
        async throws
    {
        let bench = BrokerBench()
        let id = try await bench.see()
        bench.isAnswering.set(false)

        async let waited = bench.call("endpoint_wait", ["endpoint": "shop", "timeout_s": 20])
        for _ in 0..<4 {
            await bench.clock.waitForSleepers(2)
            bench.clock.advance(by: BrokerMCPServer.probePause)
        }
        await bench.clock.waitForSleepers(2)
        let before = try await bench.registry.endpoint(id).state
        bench.isAnswering.set(true)
        bench.clock.advance(by: BrokerMCPServer.probePause)

        #expect(before == .offline)
        #expect(try await waited.structure?["event"] == "online")
    }

    @Test func `an app that ends is offline within three probes`() async throws {
        let bench = BrokerBench()
        try await bench.see()
        bench.isAnswering.set(false)

        async let waited = bench.call("endpoint_wait", ["endpoint": "shop", "event": "offline"])
        for _ in 0..<2 {
            await bench.clock.waitForSleepers(2)
            bench.clock.advance(by: BrokerMCPServer.probePause)
        }

        #expect(try await waited.structure?["event"] == "offline")
    }

    @Test func `an app that is gone and back is restarted`() async throws {
        let bench = BrokerBench()
        try await bench.see()
        bench.isAnswering.set(false)

        async let waited = bench.call("endpoint_wait", ["endpoint": "shop", "event": "restarted"])
        await bench.clock.waitForSleepers(2)
        bench.isAnswering.set(true)
        bench.clock.advance(by: BrokerMCPServer.probePause)

        #expect(try await waited.structure?["event"] == "restarted")
    }

    @Test func `a wait dials nothing that nobody approved, and no app that it is not about`() async throws {
        let bench = BrokerBench()
        let id = try await bench.see()
        let stranger = try await bench.see(on: "evil.local")
        try await bench.see("com.example.bank", on: "pixel.local")
        bench.trust.state.withLock { $0.unapproved = [stranger] }

        _ = try await bench.call("endpoint_wait", ["endpoint": "shop"])

        #expect(bench.isAnswering.asked == [id])
    }

    @Test func `nobody is told of what is not theirs`() async throws {
        let bench = BrokerBench()
        let id = try await bench.see()
        var news = ChangeCoalescer.Gathered()
        news.phones = true
        news.take(EndpointChange(revision: 1, kind: .changed, endpoint: try await bench.registry.endpoint(id)))

        #expect(news.changes(for: BrokerBench.grant([.registryRead], on: .bundles(["other"]))) == [])
        #expect(news.changes(for: BrokerBench.grant([.endpointCall])) == [])
        #expect(
            news.changes(for: BrokerBench.grant([.registryRead], on: .endpoints([id])))
                == [.resource("patchbay://endpoints"), .resource("patchbay://endpoint/\(id)")]
        )
    }

    @Test func `many changes of one endpoint are told once`() async throws {
        let bench = BrokerBench()
        let id = try await bench.see()
        let (_, changes) = await bench.registry.changes()
        for port in 4_001...4_010 { try await bench.see(port: UInt16(port)) }
        await bench.registry.finish()
        var news = ChangeCoalescer.Gathered()

        for await change in changes { news.take(change) }

        #expect(
            news.changes(for: BrokerBench.owner)
                == [.resource("patchbay://endpoints"), .resource("patchbay://endpoint/\(id)")]
        )
    }

    @Test func `changes are told a quarter of a second after the first of them`() async throws {
        let bench = BrokerBench()
        var everything = bench.server.changes(for: BrokerBench.owner).makeAsyncIterator()

        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await bench.server.run() }
            for await _ in bench.followed.stream { break }
            let id = try await bench.see()
            await bench.clock.waitForSleeper()
            bench.clock.advance(by: ChangeCoalescer.gathering)

            #expect(await everything.next() == .resources)
            #expect(await everything.next() == .resource("patchbay://endpoints"))
            #expect(await everything.next() == .resource("patchbay://endpoint/\(id)"))

            // The list as it stands is no news, another one is.
            bench.phones.continuation.yield([])
            bench.phones.continuation.yield([])
            await bench.clock.waitForSleeper()
            bench.clock.advance(by: ChangeCoalescer.gathering)

            #expect(await everything.next() == .resource("patchbay://devices"))
            group.cancelAll()
        }
    }
}
