import FoundationEssentials
import TestSupport

/// The real patchbayd in a scratch folder, and the real patchbay to talk to it.
final class RunningBroker {
    let socket: String
    private let state: String
    private let scratch: ScratchFolder
    private let environment: [String: String]
    private let hardship: [String]
    /// What comes before the options that every daemon here gets.
    private let options: [String]
    private let namespace: NetworkNamespace?
    private(set) var daemon: Program

    /// Up, with its door open. Without a rig it sees no phones, without a host no network.
    ///
    /// It uses the host's Avahi, and runs in the network of the test or, if it is to be inside, in that of the host.
    /// `hardship` are the words before its command that make life hard for it, such as `prlimit --nofile=64:64`; the
    /// configuration is what stands in its file.
    init(
        in scratch: ScratchFolder,
        phones: PhoneRig? = nil,
        host: AvahiHost? = nil,
        isInside: Bool = false,
        hardship: [String] = [],
        configuration: String? = nil
    ) async throws {
        self.scratch = scratch
        if let configuration {
            let file = scratch.file("patchbay.toml")
            try Data(configuration.utf8).write(to: URL(filePath: file))
            options = ["--config", file]
        } else {
            options = []
        }
        self.hardship = hardship
        namespace = isInside ? host?.namespace : nil
        socket = "\(scratch.path)/patchbay.sock"
        state = "\(scratch.path)/state"
        var environment = [
            "PATCHBAY_SOCKET": socket, "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(scratch.path)/no-bus",
            "USBMUXD_SOCKET_ADDRESS": "\(scratch.path)/no-usbmuxd", "HOME": scratch.path,
        ]
        if let phones { environment.merge(phones.clientEnvironment) { $1 } }
        if let host { environment.merge(host.environment) { $1 } }
        self.environment = environment
        daemon = try await Self.start(hardship, options, state, environment, scratch, namespace)
    }

    private static func start(
        _ hardship: [String],
        _ options: [String],
        _ state: String,
        _ environment: [String: String],
        _ scratch: ScratchFolder,
        _ namespace: NetworkNamespace?
    ) async throws -> Program {
        let words = hardship + [try Executable.built("patchbayd"), "--state-dir", state] + options
        let daemon = try await Program(
            words[0],
            Array(words.dropFirst()),
            in: scratch,
            environment: environment,
            namespace: namespace
        )
        try await daemon.waitForLine("the door is open")
        return daemon
    }

    /// Stopped politely, or killed, and started again, with what it kept.
    func restart(isKilled: Bool = false) async throws {
        if isKilled { daemon.kill() } else { daemon.terminate() }
        _ = try await daemon.exitStatus()
        daemon = try await Self.start(hardship, options, state, environment, scratch, namespace)
    }

    /// What `patchbay` answers to this command; an exit status other than 0 is an error.
    func ask(_ arguments: String...) async throws -> [String] {
        try await Program.run(Executable.built("patchbay"), arguments, in: scratch, environment: environment)
    }

    /// A `patchbay` that stays.
    func start(_ arguments: String..., input: Program.Input = .nothing) async throws -> Program {
        try await start(arguments, input: input)
    }

    func start(_ arguments: [String], input: Program.Input = .nothing) async throws -> Program {
        try await Program(
            Executable.built("patchbay"),
            arguments,
            in: scratch,
            environment: environment,
            input: input
        )
    }

    /// The body of what the server behind a tunnel answers.
    func fetch(_ path: String, port: UInt16) async throws -> String {
        try await Program.run(
            "curl",
            ["-sS", "--max-time", "5", "http://127.0.0.1:\(port)\(path)"],
            in: scratch
        ).joined(separator: "\n")
    }

    /// Opens a tunnel and says on which port.
    func forward(_ arguments: String...) async throws -> UInt16 {
        let line = try await Program.run(
            Executable.built("patchbay"),
            ["forward"] + arguments,
            in: scratch,
            environment: environment
        ).first
        let port = line?.split(separator: " ").first?.split(separator: ":").last.flatMap { UInt16($0) }
        guard let port else { throw RigError("forward said “\(line ?? "")” where a port should be") }
        return port
    }
}
