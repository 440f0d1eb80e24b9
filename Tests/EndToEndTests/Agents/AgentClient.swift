import FoundationEssentials
import TestSupport

/// A real MCP client that stays connected and makes calls on command (`caller.py`).
final class AgentClient: Sendable {
    private struct Outcome: Decodable {
        let ok: Bool?
        let text: String?
        let types: [String]?
        let error: String?
    }

    let peer: AgentPeer
    private let program: Program

    /// Returns when the client is connected. The client answers elicitation requests with `name`.
    init(
        _ peer: AgentPeer,
        to url: String,
        grant: String,
        name: String = "somebody",
        namespace: NetworkNamespace? = nil,
        in scratch: ScratchFolder
    ) async throws {
        self.peer = peer
        program = try await Program(
            peer.library.interpreter(in: scratch),
            ["\(AgentPeer.folder)/caller.py", peer.rawValue, url],
            in: scratch,
            environment: [
                "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore", "PATCHBAY_GRANT": grant, "PEER_NAME": name,
            ],
            input: .pipe,
            namespace: namespace
        )
        try await program.waitForLine(#"{"connected": true}"#, within: .seconds(60))
    }

    /// Starts one client of each kind; all are connected at the same time.
    static func all(
        to url: String,
        grant: String,
        namespace: NetworkNamespace? = nil,
        in scratch: ScratchFolder
    ) async throws -> [AgentClient] {
        try await withThrowingTaskGroup(of: AgentClient.self) { group in
            for peer in AgentPeer.allCases {
                group.addTask { try await AgentClient(peer, to: url, grant: grant, namespace: namespace, in: scratch) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    /// The types of the content blocks of each result so far, in the order of the results.
    var resultTypes: [[String]] {
        program.output.compactMap { try? JSONDecoder().decode(Outcome.self, from: Data($0.utf8)).types }
    }

    /// Starts a call; `outcome(from:)` waits for its result.
    func begin(_ tool: String, _ arguments: String = "{}") throws -> Int {
        let start = program.transcript.soFar.count
        try program.write(#"{"tool": "\#(tool)", "arguments": \#(arguments)}"# + "\n")
        return start
    }

    /// The result of the call started at this transcript position. The text is nil after a failure; `log` has the
    /// reason.
    func outcome(from start: Int) async throws -> (text: String?, log: String) {
        let line = try await program.waitForLine(#"{"ok": "#, from: start)
        let outcome = try JSONDecoder().decode(Outcome.self, from: Data(line.utf8))
        return (outcome.ok == true ? outcome.text : nil, "\(peer): \(line)")
    }

    /// Makes a call and waits for its result.
    func call(_ tool: String, _ arguments: String = "{}") async throws -> (text: String?, log: String) {
        try await outcome(from: begin(tool, arguments))
    }
}
