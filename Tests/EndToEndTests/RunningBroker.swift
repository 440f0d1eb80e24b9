import FoundationEssentials
import TestSupport

/// The real patchbayd in a scratch folder, with the real patchbay as its client.
final class RunningBroker {
    let socket: String
    let state: String
    private let scratch: ScratchFolder
    private let environment: [String: String]
    /// Words before the command of the daemon; a change applies to the next start.
    var commandPrefix: [String]
    /// Options before those that every daemon gets.
    private let options: [String]
    private let namespace: NetworkNamespace?
    private(set) var daemon: Program

    /// Starts the daemon and returns when its API is open. Without `phones` it has no devices, without `host` no
    /// network.
    ///
    /// The daemon uses the host's Avahi. It runs in the namespace, or in the test's network without one.
    /// `commandPrefix` is put before its command, such as `prlimit --nofile=64:64`. `configuration` is the content of
    /// its configuration file. A broker with a name has its files in a folder of its own.
    init(
        in scratch: ScratchFolder,
        named name: String? = nil,
        phones: UsbmuxdFixture? = nil,
        android: ADBFixture? = nil,
        host: AvahiHost? = nil,
        namespace: NetworkNamespace? = nil,
        commandPrefix: [String] = [],
        configuration: String? = nil
    ) async throws {
        self.scratch = scratch
        let folder = try name.map { try scratch.makeFolder($0) } ?? scratch.path
        if let configuration {
            let file = "\(folder)/patchbay.toml"
            try Data(configuration.utf8).write(to: URL(filePath: file))
            options = ["--config", file]
        } else {
            options = []
        }
        self.commandPrefix = commandPrefix
        self.namespace = namespace
        socket = "\(folder)/patchbay.sock"
        state = "\(folder)/state"
        var environment = [
            "PATCHBAY_SOCKET": socket, "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(scratch.path)/no-bus",
            "USBMUXD_SOCKET_ADDRESS": "\(scratch.path)/no-usbmuxd", "HOME": folder,
            "ADB_SERVER_SOCKET": "localfilesystem:\(scratch.path)/no-adb",
        ]
        if let phones { environment.merge(phones.clientEnvironment) { $1 } }
        if let android { environment.merge(android.clientEnvironment) { $1 } }
        if let host { environment.merge(host.environment) { $1 } }
        self.environment = environment
        daemon = try await Self.start(commandPrefix, options, state, environment, scratch, namespace)
    }

    /// Starts the daemon with the Avahi of a host, in the network of the host.
    convenience init(
        in scratch: ScratchFolder,
        named name: String? = nil,
        phones: UsbmuxdFixture? = nil,
        on host: AvahiHost,
        commandPrefix: [String] = [],
        configuration: String? = nil
    ) async throws {
        try await self.init(
            in: scratch,
            named: name,
            phones: phones,
            host: host,
            namespace: host.namespace,
            commandPrefix: commandPrefix,
            configuration: configuration
        )
    }

    private static func start(
        _ commandPrefix: [String],
        _ options: [String],
        _ state: String,
        _ environment: [String: String],
        _ scratch: ScratchFolder,
        _ namespace: NetworkNamespace?
    ) async throws -> Program {
        let words = commandPrefix + [try Executable.built("patchbayd"), "--state-directory", state] + options
        let daemon = try await Program(
            words[0],
            Array(words.dropFirst()),
            in: scratch,
            environment: environment,
            namespace: namespace
        )
        try await daemon.waitForLine("the API is open")
        return daemon
    }

    /// Stops the daemon with SIGTERM, or SIGKILL if `isKilled`, and starts it again with its state.
    func restart(isKilled: Bool = false) async throws {
        if isKilled { daemon.kill() } else { daemon.terminate() }
        _ = try await daemon.exitStatus()
        daemon = try await Self.start(commandPrefix, options, state, environment, scratch, namespace)
    }

    /// Runs `patchbay` and returns its output; a nonzero exit status is an error.
    func ask(_ arguments: String...) async throws -> [String] { try await ask(arguments) }

    func ask(_ arguments: [String]) async throws -> [String] {
        try await Program.run(Executable.built("patchbay"), arguments, in: scratch, environment: environment)
    }

    /// Starts a `patchbay` that keeps running.
    func start(_ arguments: String..., input: Program.Input = .nothing) async throws -> Program {
        try await start(arguments, input: input)
    }

    func start(_ arguments: [String], input: Program.Input = .nothing) async throws -> Program {
        try await Program(Executable.built("patchbay"), arguments, in: scratch, environment: environment, input: input)
    }

    /// Stores the session token of an app.
    func setSecret(_ secret: String, of id: String) async throws {
        let setting = try await start("secret", "set", id, input: .pipe)
        try setting.write(secret + "\n")
        setting.closeInput()
        guard try await setting.exitStatus() == .exited(0) else { throw TestSupportError(setting.log) }
    }

    /// Fetches a path from the server behind a tunnel and returns the body.
    func fetch(_ path: String, port: UInt16) async throws -> String {
        try await Program.run(
            "curl",
            ["-sS", "--max-time", "5", "http://127.0.0.1:\(port)\(path)"],
            in: scratch
        ).joined(separator: "\n")
    }

    /// Opens a tunnel and returns its port.
    func forward(_ arguments: String...) async throws -> UInt16 {
        let line = try await Program.run(
            Executable.built("patchbay"),
            ["forward", "--detach"] + arguments,
            in: scratch,
            environment: environment
        ).first
        let port = line?.split(separator: " ").first?.split(separator: ":").last.flatMap { UInt16($0) }
        guard let port else { throw TestSupportError("forward said “\(line ?? "")” where a port should be") }
        return port
    }
}
