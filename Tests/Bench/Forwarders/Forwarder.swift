import TestSupport

/// A running forwarder on a test bed.
struct Forwarder: Sendable {
    let kind: ForwarderKind
    private let addresses: [App: AppAddress]
    private let programs: [Program]

    init(_ kind: ForwarderKind, addresses: [App: AppAddress], programs: [Program] = []) {
        self.kind = kind
        self.addresses = addresses
        self.programs = programs
    }

    func address(of app: App) throws -> AppAddress {
        guard let address = addresses[app] else { throw TestSupportError("\(kind.rawValue) has no way to \(app)") }
        return address
    }

    /// Returns the sum of the figures of its processes.
    func figures() -> ProcessFigures { programs.map { ProcessFigures(ofTreeAt: $0.processID) }.reduce(.none, +) }

    func processorTime() -> ProcessorTime { ProcessorTime(of: figures().processes) }

    /// The last output of a forwarder that died; nil while it runs.
    var exitMessage: String? {
        programs.first { ProcessFigures(ofTreeAt: $0.processID).threads == 0 }.map { program in
            "died: \(program.transcript.soFar.last?.text ?? "in silence")"
        }
    }

    func stop() async throws {
        for program in programs {
            program.kill()
            _ = try await program.exitStatus()
        }
    }
}
