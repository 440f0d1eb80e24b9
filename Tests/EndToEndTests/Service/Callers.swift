import TestSupport

/// `callers.py`: the broker's callers, and what systemd does for it.
enum Callers {
    static let script = String(#filePath.dropLast("Callers.swift".count)) + "callers.py"

    /// Runs one of its stories to the end.
    static func run(_ arguments: String..., in scratch: ScratchFolder) async throws -> [String] {
        try await Program.run("python3", [script] + arguments, in: scratch)
    }

    /// Listens where a daemon tells systemd how it is; each thing told is a line that begins with the time in seconds.
    static func listen(at notify: String, door: String, in scratch: ScratchFolder) async throws -> Program {
        let listener = try await Program("python3", [script, "notify", notify, door], in: scratch)
        try await listener.waitForLine("listening")
        return listener
    }
}

extension RunningBroker {
    /// How many connections are open at its socket.
    func connections(in scratch: ScratchFolder) async throws -> Int {
        try await Program.run("ss", ["-xH"], in: scratch).count { $0.contains(" ESTAB ") && $0.contains(" \(socket) ") }
    }
}
