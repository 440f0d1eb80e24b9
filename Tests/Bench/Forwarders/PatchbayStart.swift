import TestSupport

/// Starts the release broker in its own folder, with a tunnel to each app.
struct PatchbayStart {
    /// The default limit is 2,000 connections; the trials need more.
    private static let configuration = "[tunnels]\nmax_connections = 12000\n"

    private let bed: TestBed
    private let folder: String
    private let environment: [String: String]

    init(on bed: TestBed) throws {
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
            ["--config", "\(folder)/patchbay.toml", "--state-directory", "\(folder)/state"],
            in: bed.scratch,
            environment: environment
        )
        try await daemon.waitForLine("the API is open")
        var addresses: [App: AppAddress] = [:]
        if kind == .patchbay {
            try await eventually("Patchbay lists the phone") {
                try await ask("devices").contains { $0.contains(Phone.udid) }
            }
            for app in App.allCases {
                addresses[app] = try await forward("tcp:0:\(bed.port(of: app))", "--device", Phone.udid)
            }
        } else {
            for app in App.allCases {
                _ = try await ask("add", "\(app)", "127.0.0.1:\(bed.port(of: app))", "--kind", "tcp")
                addresses[app] = try await forward("tcp:0", "--endpoint", "\(app)")
            }
        }
        return Forwarder(kind, addresses: addresses, programs: [daemon])
    }

    private func ask(_ arguments: String...) async throws -> [String] {
        try await Program.run(Executable.built("patchbay"), arguments, in: bed.scratch, environment: environment)
    }

    private func forward(_ arguments: String...) async throws -> AppAddress {
        let line = try await Program.run(
            Executable.built("patchbay"),
            ["forward", "--detach"] + arguments,
            in: bed.scratch,
            environment: environment
        ).first
        let port = line?.split(separator: " ").first?.split(separator: ":").last.flatMap { UInt16($0) }
        guard let port else { throw TestSupportError("forward said “\(line ?? "")” where a port should be") }
        return .tcp(port)
    }
}
