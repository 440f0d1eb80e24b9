import FoundationEssentials
import TestSupport

/// A way in which agents' clients speak MCP, through a library of PyPI; `peer.py` has what tells them apart.
enum AgentPeer: String, Sendable, CaseIterable {
    case mcp1
    case mcp2Legacy = "mcp2-legacy"
    case mcp2Modern = "mcp2-modern"
    case fastmcp2
    case fastmcp4

    /// A library that is a client and a server; its requirements are in a file of that name.
    enum Library: String, Sendable, CaseIterable {
        case mcp1 = "mcp-1"
        case mcp2 = "mcp-2"
        case fastmcp2 = "fastmcp-2"
        case fastmcp4 = "fastmcp-4"

        /// A Python that has it; the first time it is installed into the build folder, which needs PyPI.
        func interpreter(in scratch: ScratchFolder) async throws -> String {
            let lines = try await Program.run(
                "sh",
                ["\(AgentPeer.folder)/environment", rawValue],
                in: scratch,
                within: .seconds(300)
            )
            guard let path = lines.last else { throw RigError("there is no Python with \(rawValue)") }
            return path
        }
    }

    static let folder = String(#filePath.dropLast("/AgentPeer.swift".count))

    var library: Library {
        switch self {
        case .mcp1: .mcp1
        case .mcp2Legacy, .mcp2Modern: .mcp2
        case .fastmcp2: .fastmcp2
        case .fastmcp4: .fastmcp4
        }
    }

    /// Something that a client can be connected to.
    struct Target: Sendable {
        /// `server`, `questions` and `guard` for `server.py`, `app` for the sample app.
        let kind: String
        /// A URL, or the words of a command that speaks MCP over standard input and output.
        let words: [String]
    }

    /// What it sees of each target, one after the other: JSON texts, one for each thing that was asked, without `_meta`.
    ///
    /// The grant is what it shows at a URL.
    func transcripts(of targets: [Target], grant: String? = nil, in scratch: ScratchFolder) async throws -> [[String]] {
        let groups = targets.map { [$0.kind] + $0.words }.joined(separator: ["--"])
        let lines = try await Program.run(
            library.interpreter(in: scratch),
            ["\(Self.folder)/transcript.py", rawValue] + groups,
            in: scratch,
            environment: ["PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore", "PATCHBAY_GRANT": grant ?? ""],
            within: .seconds(120)
        )
        return targets.indices.map { index in
            let mark = "[\(index), "
            return lines.filter { $0.hasPrefix(mark) }.map { String($0.dropFirst(mark.count).dropLast()) }
        }
    }
}
