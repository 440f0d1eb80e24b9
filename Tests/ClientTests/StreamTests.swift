import Client
import FoundationEssentials
import Model
import Samples
import Testing

@Suite struct StreamTests {
    @Test func `the stream delivers each kind of event in order, and requests missed events`() async throws {
        let list = EndpointList(revision: 4, endpoints: [SampleDocuments.endpoint])
        let change = EndpointChange(revision: 5, kind: .changed, endpoint: SampleDocuments.endpoint)
        let pieces = [
            ScriptedBroker.streamHead, ": hello\n\n",
            "id: 4\nevent: snapshot\ndata: \(try SampleDocuments.json(list))\n\n",
            "event: novelty\ndata: 1\n\n", "id: 5\nevent: endpoint\ndata: \(try SampleDocuments.json(change))\n\n",
            "event: devices\ndata: {\"schema\":1,\"devices\":[]}\n\n",
            "event: hosts\ndata: {\"schema\":1,\"hosts\":[{\"name\":\"lab2\"}]}\n\n",
        ]
        let host = HostStatus(name: "lab2")

        try await ScriptedBroker.with(.pieces(pieces)) { broker, client in
            var events: [BrokerEvent] = []
            try await client.streamEvents(after: 3) { events.append($0) }

            #expect(events == [.snapshot(list), .endpoint(change), .devices([]), .hosts([host])])
            #expect(broker.requests.first?.contains("Last-Event-ID: 3\r\n") == true)
            #expect(broker.requests.first?.contains("Accept: text/event-stream\r\n") == true)
        }
    }

    @Test func `an event that is not JSON ends the stream with an error`() async throws {
        try await ScriptedBroker.with(.open([ScriptedBroker.streamHead, "event: endpoint\ndata: {\n\n"])) { _, client in
            let error = await #expect(throws: ClientError.self) { try await client.streamEvents { _ in } }
            #expect(error?.description.hasPrefix("an endpoint event is not valid") == true)
        }
    }

    @Test func `ephemeral tunnels report their addresses, then their failures`() async throws {
        let failure = TunnelConnectionFailure(tunnel: "t3", reason: .refused, detail: "nothing listens on port 22")
        let pieces = [
            ScriptedBroker.streamHead,
            "event: tunnels\ndata: \(try SampleDocuments.json([SampleDocuments.tunnel]))\n\n",
            "event: failure\ndata: \(try SampleDocuments.json(failure))\n\n",
        ]

        try await ScriptedBroker.with(.pieces(pieces)) { broker, client in
            var events: [EphemeralTunnelEvent] = []
            try await client.tunnels.openEphemeral([SampleDocuments.tunnel.spec]) { events.append($0) }

            #expect(events == [.opened([SampleDocuments.tunnel]), .failure(failure)])
            #expect(broker.requests.first?.hasPrefix("POST /v1/tunnels/ephemeral HTTP/1.1") == true)
        }
    }

    @Test func `an ephemeral advertisement reports each of its names`() async throws {
        let pieces = [
            ScriptedBroker.streamHead,
            "event: advertisement\ndata: \(try SampleDocuments.json(SampleDocuments.advertisement))\n\n",
        ]

        try await ScriptedBroker.with(.pieces(pieces)) { _, client in
            var names: [String] = []
            try await client.advertisements.publishEphemeral(SampleDocuments.advertisement.spec) {
                names.append($0.publishedName.text)
            }

            #expect(names == ["Shop #2"])
        }
    }

    @Test func `an error of the handler is rethrown, and the connection closes`() async throws {
        struct Enough: Error {}
        let pieces = [ScriptedBroker.streamHead, "event: devices\ndata: {\"schema\":1,\"devices\":[]}\n\n"]

        try await ScriptedBroker.with(.open(pieces)) { _, client in
            await #expect(throws: Enough.self) { try await client.streamEvents { _ in throw Enough() } }
        }
    }

    @Test func `cancelling the task ends an open stream at once`() async throws {
        let pieces = [ScriptedBroker.streamHead, "event: devices\ndata: {\"schema\":1,\"devices\":[]}\n\n"]

        try await ScriptedBroker.with(.open(pieces)) { _, client in
            let (seen, sign) = AsyncStream.makeStream(of: Void.self)
            await withTaskGroup(of: (any Error)?.self) { group in
                group.addTask {
                    do {
                        try await client.streamEvents { _ in sign.yield() }
                        return nil
                    } catch { return error }
                }
                for await _ in seen { break }
                group.cancelAll()
                let error = await group.next() ?? nil
                #expect(error is CancellationError)
            }
        }
    }
}
