import FoundationEssentials
import TestSupport

/// An MCP client library from PyPI; `peer.py` contains the differences between them.
enum AgentPeer: String, Sendable, CaseIterable {
    case mcp1
    case mcp2Legacy = "mcp2-legacy"
    case mcp2Modern = "mcp2-modern"
    case fastmcp2
    case fastmcp4

    /// A library with a client and a server; the requirements file has the same name.
    enum Library: String, Sendable, CaseIterable {
        case mcp1 = "mcp-1"
        case mcp2 = "mcp-2"
        case fastmcp2 = "fastmcp-2"
        case fastmcp4 = "fastmcp-4"

        /// Returns a Python interpreter with the library. The first call installs the library into the build folder
        /// from PyPI.
        func interpreter(in scratch: ScratchFolder) async throws -> String {
            let lines = try await Program.run(
                "sh",
                ["\(AgentPeer.folder)/environment", rawValue],
                in: scratch,
                within: .seconds(300)
            )
            guard let path = lines.last else { throw TestSupportError("there is no Python with \(rawValue)") }
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

    /// A target for a client connection.
    struct Target: Sendable {
        /// The kind: `server`, `questions` and `guard` for `server.py`, `app` for the sample app.
        let kind: String
        /// A URL, or the words of a command that serves MCP over standard input and output.
        let words: [String]
    }

    /// Returns the transcript of each target: one JSON text per request, without `_meta`.
    ///
    /// The grant is sent with requests to a URL.
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
