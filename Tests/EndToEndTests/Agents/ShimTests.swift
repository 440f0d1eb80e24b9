import Rig
import Testing

/// `patchbay mcp` between real clients and a real server: what it cannot be told from is no shim at all.
@Suite struct ShimTests {
    @Test(.needs(.python)) func `every client sees the same through the shim as directly`() async throws {
        try await withScratchFolder { scratch in
            // It serves both eras.
            let server = try await PeerServer(.mcp2, in: scratch)
            let shim = [try Executable.built("patchbay"), "mcp", "--socket", server.socket]

            try await withThrowingTaskGroup { group in
                for peer in AgentPeer.allCases {
                    group.addTask {
                        let transcripts = try await peer.transcripts(
                            of: [.init(kind: "server", words: [server.url]), .init(kind: "server", words: shim)],
                            in: scratch
                        )

                        #expect(transcripts[0].count == 17)
                        #expect(transcripts[0] == transcripts[1], "\(peer)")
                    }
                }
                try await group.waitForAll()
            }
        }
    }
}
