import TestSupport
import Testing

/// `patchbay mcp` between real clients and a real server: its transcript equals that of a direct connection.
@Suite(.scratchFolder) struct ShimTests {
    private let scratch = ScratchFolder.current

    @Test(.needs(.python)) func `every client sees the same through the stdio shim as directly`() async throws {
        // The server supports both protocol eras.
        let server = try await PeerServer(.mcp2, in: scratch)
        let shim = [try Executable.built("patchbay"), "mcp", "--socket", server.socket]

        try await withThrowingTaskGroup { group in
            for peer in AgentPeer.allCases {
                group.addTask {
                    let transcripts = try await peer.transcripts(
                        of: ["server", "questions"].flatMap { kind in
                            [.init(kind: kind, words: [server.url]), .init(kind: kind, words: shim)]
                        },
                        in: scratch
                    )

                    #expect(transcripts.map(\.count) == [18, 18, 10, 10])
                    // The shim does not know which headers a server requires; the broker requires none.
                    let (direct, through) = (Self.withoutHeader(transcripts[0]), Self.withoutHeader(transcripts[1]))
                    #expect(direct == through, "\(peer)")
                    #expect(transcripts[2] == transcripts[3], "\(peer)")
                }
            }
            try await group.waitForAll()
        }
    }

    @Test(.needs(.python)) func `an app's request passes the broker and the shim, and the response returns`()
        async throws
    {
        let server = try await PeerServer(.mcp1, in: scratch)
        let broker = try await RunningBroker(in: scratch)
        let shim = try await Self.shim(to: server, behind: broker)
        let direct = AgentPeer.Target(kind: "questions", words: [server.url])
        let through = AgentPeer.Target(kind: "questions", words: shim)

        let first = try await AgentPeer.mcp1.transcripts(of: [direct, through], in: scratch)
        let modern = try await AgentPeer.mcp2Modern.transcripts(of: [through], in: scratch)
        let legacy = try await AgentPeer.mcp2Legacy.transcripts(of: [direct], in: scratch)

        #expect(first[0].count == 10)
        #expect(first[0] == first[1])
        #expect(legacy == modern)
    }

    @Test(.needs(.python), arguments: [AgentPeer.Library.mcp2, .fastmcp4])
    func `input requests in results work with clients of every protocol version`(
        library: AgentPeer.Library
    ) async throws {
        let server = try await PeerServer(library, isStateless: true, in: scratch)
        let broker = try await RunningBroker(in: scratch)
        let shim = try await Self.shim(to: server, behind: broker)
        let direct = AgentPeer.Target(kind: "guard", words: [server.url])
        let through = AgentPeer.Target(kind: "guard", words: shim)
        let expected = try await AgentPeer.mcp2Modern.transcripts(of: [direct], in: scratch)

        #expect(expected.first?.first?.contains("kept: accept") == true, "\(expected)")
        for peer in AgentPeer.allCases {
            #expect(try await peer.transcripts(of: [through], in: scratch) == expected, "\(peer)")
        }
    }

    @Test(.needs(.python)) func `a tool that requires a header is called through shim and broker`() async throws {
        let server = try await PeerServer(.mcp2, in: scratch)
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let shim = try await Self.shim(to: server, behind: broker)

        let transcripts = try await AgentPeer.mcp2Modern.transcripts(
            of: [.init(kind: "server", words: [server.url]), .init(kind: "server", words: shim)],
            in: scratch
        )

        #expect(transcripts[0].count == 18)
        #expect(transcripts[0] == transcripts[1])
    }

    @Test(.needs(.python)) func `a call of 20 s writes only lines of JSON, in every protocol version`() async throws {
        let app = try await SampleApp(in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            configuration: "[api]\ntcp = false\n[[endpoint]]\nname = \"shop\"\nkind = \"appreveal\"\n"
                + "address = \"127.0.0.1\"\nport = \(app.port)\n"
        )
        let shim = [try Executable.built("patchbay"), "mcp", "--endpoint", "shop", "--socket", broker.socket]

        let results = try await Program.run(
            "python3",
            ["\(AgentPeer.folder)/lines.py", "20"] + shim,
            in: scratch,
            within: .seconds(120)
        )

        #expect(results.count == 5)
        for result in results { #expect(result.hasSuffix(" lines"), "\(result)") }
    }

    /// The command line of the shim for a server behind the broker.
    private static func shim(to server: PeerServer, behind broker: RunningBroker) async throws -> [String] {
        let added = try await broker.ask("add", "peer", "127.0.0.1:\(server.port)", "--kind", "mcp")
        let id = try #require(added.first?.split(separator: " ").last?.dropLast()).description
        _ = try await broker.ask("approve", id)
        return [try Executable.built("patchbay"), "mcp", "--endpoint", id, "--socket", broker.socket]
    }

    private static func withoutHeader(_ transcript: [String]) -> [String] {
        transcript.filter { !$0.hasPrefix("\"header\"") }
    }
}
