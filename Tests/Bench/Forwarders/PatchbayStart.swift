import TestSupport

/// The broker as it is shipped, in a place of its own, with a tunnel to each app.
struct PatchbayStart {
    /// The usual limit is 2,000 connections and is met by a clean refusal; more are asked for here.
    private static let configuration = "[tunnels]\nmax_connections = 12000\n"

    private let bed: Bed
    private let folder: String
    private let environment: [String: String]

    init(on bed: Bed) throws {
        self.bed = bed
        let name = "patchbay-\(UInt32.random(in: 0 ... .max))"
        folder = try bed.scratch.makeFolder(name)
        try bed.scratch.write(Self.configuration, to: "\(name)/patchbay.toml")
        environment = bed.environment.merging([
            "PATCHBAY_SOCKET": "\(folder)/socket", "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(folder)/no-bus",
            "HOME": folder,
        ]) { $1 }
    }

    func forwarder(_ kind: ForwarderKind) async throws -> Forwarder {
        let daemon = try await Program(
            Executable.built("patchbayd"),
            ["--config", "\(folder)/patchbay.toml", "--state-dir", "\(folder)/state"],
            in: bed.scratch,
            environment: environment
        )
        try await daemon.waitForLine("the door is open")
        var doors: [App: Door] = [:]
        if kind == .patchbay {
            try await eventually("Patchbay lists the phone") {
                try await ask("devices").contains { $0.contains(Phone.udid) }
            }
            for app in App.allCases {
                doors[app] = try await forward("tcp:0:\(bed.port(of: app))", "--device", Phone.udid)
            }
        } else {
            for app in App.allCases {
                _ = try await ask("add", "\(app)", "127.0.0.1:\(bed.port(of: app))", "--kind", "tcp")
                doors[app] = try await forward("tcp:0", "--endpoint", "\(app)")
            }
        }
        return Forwarder(kind, doors: doors, programs: [daemon])
    }

    private func ask(_ arguments: String...) async throws -> [String] {
        try await Program.run(Executable.built("patchbay"), arguments, in: bed.scratch, environment: environment)
    }

    private func forward(_ arguments: String...) async throws -> Door {
        let line = try await Program.run(
            Executable.built("patchbay"),
            ["forward"] + arguments,
            in: bed.scratch,
            environment: environment
        ).first
        let port = line?.split(separator: " ").first?.split(separator: ":").last.flatMap { UInt16($0) }
        guard let port else { throw RigError("forward said “\(line ?? "")” where a port should be") }
        return .tcp(port)
    }
}
