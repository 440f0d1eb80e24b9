import TestSupport

/// One of the compared, running on a bed.
struct Forwarder: Sendable {
    let kind: ForwarderKind
    private let doors: [App: Door]
    private let programs: [Program]

    init(_ kind: ForwarderKind, doors: [App: Door], programs: [Program] = []) {
        self.kind = kind
        self.doors = doors
        self.programs = programs
    }

    func door(to app: App) throws -> Door {
        guard let door = doors[app] else { throw RigError("\(kind.rawValue) has no way to \(app)") }
        return door
    }

    /// Of all its processes together.
    func figures() -> ProcessFigures { programs.map { ProcessFigures(ofTreeAt: $0.processID) }.reduce(.none, +) }

    func processorTime() -> ProcessorTime { ProcessorTime(of: figures().processes) }

    /// What it said before it died; nil while it lives.
    var lastWords: String? {
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
