import Rig

/// `server.py`: a server that offers one of everything, made with one of the libraries.
struct PeerServer {
    let port: UInt16

    var url: String { "http://127.0.0.1:\(port)/mcp" }
    /// Where it listens as well.
    let socket: String
    let program: Program

    /// Returns when it listens.
    init(_ library: AgentPeer.Library, in scratch: ScratchFolder) async throws {
        socket = scratch.file("\(library.rawValue).sock")
        program = try await Program(
            library.interpreter(in: scratch),
            ["\(AgentPeer.folder)/server.py", "--socket", socket],
            in: scratch,
            environment: ["PYTHONDONTWRITEBYTECODE": "1"]
        )
        let line = try await program.waitForLine("listening on ", within: .seconds(60))
        guard let port = UInt16(line.dropFirst("listening on ".count)) else { throw RigError("“\(line)” is no port") }
        self.port = port
    }
}
