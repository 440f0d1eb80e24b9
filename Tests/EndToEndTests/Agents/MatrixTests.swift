import TestSupport
import Testing

/// A client sees the same server through the broker as directly, except for `_meta` and IDs.
@Suite(.needs(.python), .timeLimit(.minutes(5)), .scratchFolder) struct MatrixTests {
    private let scratch = ScratchFolder.current

    private struct Path: Sendable {
        let name: String
        let direct: AgentPeer.Target
        let through: AgentPeer.Target
        /// True if the server supports 2026-07-28 itself.
        let isModern: Bool

        /// The number of entries of a transcript.
        var length: Int { ["server": 18, "questions": 10, "app": 8][direct.kind] ?? 0 }
    }

    @Test func `five MCP clients see eleven MCP servers unchanged through the broker`() async throws {
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(in: scratch, configuration: AgentBroker.configuration(port: port))
        let agent = try await AgentBroker(socket: broker.socket, port: port, in: scratch)
        let paths = try await Self.servers(broker, agent, scratch) + Self.apps(broker, agent, scratch)

        try await withThrowingTaskGroup(of: Void.self) { group in
            for peer in AgentPeer.allCases {
                group.addTask { try await Self.compare(peer, paths, agent.grant, scratch) }
            }
            try await group.waitForAll()
        }
    }

    private static func compare(
        _ peer: AgentPeer,
        _ paths: [Path],
        _ grant: String,
        _ scratch: ScratchFolder
    ) async throws {
        // A client with only the stateless protocol version needs the broker to reach an older server.
        let (modern, older) = (paths.filter(\.isModern), paths.filter { !$0.isModern })
        let reference = peer == .mcp2Modern ? AgentPeer.mcp2Legacy : peer
        let directs =
            try await peer.transcripts(of: modern.map(\.direct), in: scratch)
            + reference.transcripts(of: older.map(\.direct), in: scratch)
        let throughs = try await peer.transcripts(of: (modern + older).map(\.through), grant: grant, in: scratch)
        for (path, (direct, through)) in zip(modern + older, zip(directs, throughs)) {
            #expect(direct.count == path.length, "\(path.name) for \(peer), directly")
            #expect(direct == through, "\(path.name) for \(peer)")
        }
    }

    private static func servers(
        _ broker: RunningBroker,
        _ agent: AgentBroker,
        _ scratch: ScratchFolder
    ) async throws -> [Path] {
        var paths: [Path] = []
        for library in AgentPeer.Library.allCases {
            let server = try await PeerServer(library, in: scratch)
            let id = try await add(library.rawValue, server.port, kind: "mcp", to: broker)
            for kind in ["server", "questions"] {
                paths.append(
                    Path(
                        name: "\(kind) \(library.rawValue)",
                        direct: .init(kind: kind, words: [server.url]),
                        through: .init(kind: kind, words: [agent.url(of: id)]),
                        isModern: library == .mcp2 || library == .fastmcp4
                    )
                )
            }
            // fastmcp uses these two libraries internally.
            guard library == .mcp1 || library == .mcp2 else { continue }
            let inLines = try await add("\(library.rawValue) lines", server.linePort, kind: "mcp", to: broker)
            paths.append(
                Path(
                    name: "\(library.rawValue) in lines",
                    direct: .init(kind: "server", words: [server.url]),
                    through: .init(kind: "server", words: [agent.url(of: inLines)]),
                    isModern: library == .mcp2
                )
            )
        }
        return paths
    }

    private static func apps(
        _ broker: RunningBroker,
        _ agent: AgentBroker,
        _ scratch: ScratchFolder
    ) async throws -> [Path] {
        var paths: [Path] = []
        for mode in SampleMode.allCases {
            let app = try await SampleApp("com.example.\(mode)", mode: mode, in: scratch)
            let id = try await add("app \(mode)", app.port, kind: "appreveal", to: broker)
            if let token = app.token {
                try await broker.setSecret(token, of: id)
            }
            let query = app.token.map { "?appreveal_session_token=\($0)" } ?? ""
            paths.append(
                Path(
                    name: mode.rawValue,
                    direct: .init(kind: "app", words: ["http://127.0.0.1:\(app.port)/\(query)"]),
                    through: .init(kind: "app", words: [agent.url(of: id)]),
                    isModern: false
                )
            )
        }
        return paths
    }

    private static func add(
        _ name: String,
        _ port: UInt16,
        kind: String,
        to broker: RunningBroker
    ) async throws -> String {
        let added = try await broker.ask("add", name, "127.0.0.1:\(port)", "--kind", kind)
        let id = try #require(added.first?.split(separator: " ").last?.dropLast()).description
        _ = try await broker.ask("approve", id)
        return id
    }
}
