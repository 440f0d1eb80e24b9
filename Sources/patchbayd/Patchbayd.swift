import Apps
import ArgumentParser
import CVersion
import FoundationEssentials
import Logging
import Model
import SystemIO

/// The command line of the broker daemon.
@main
struct Patchbayd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "patchbayd",
        abstract: "The Patchbay broker: finds debug servers, connects to them, and lists them all.",
        discussion: """
            Runs in the foreground until SIGTERM or Ctrl-C. SIGHUP reads the configuration again; an invalid file \
            changes nothing, and the log names the keys that need a restart. It starts without a configuration file, \
            without Avahi and without usbmuxd, reports what is missing, and uses each when it appears. `patchbay status` \
            in another terminal shows its state.

              patchbayd
              patchbayd --config ./patchbay.toml --check-config
              patchbayd --socket /tmp/p.sock --state-directory /tmp/p

            Exit codes: 0 stopped on request or configuration valid, 1 failed to start or to run, 64 invalid command \
            line, 78 invalid configuration or path.
            """,
        version: Version.text(commit: String(cString: CVersion_commit()))
    )

    @Option(
        help: ArgumentHelp(
            "The configuration file; patchbay.example.toml has every key.",
            discussion: "Default: $XDG_CONFIG_HOME/patchbay/patchbay.toml (~/.config where that is not set), else "
                + "/etc/patchbay/patchbay.toml, else every default.",
            valueName: "file"
        )
    )
    var config: String?

    @Option(
        help: ArgumentHelp(
            "The unix socket to listen on; a relative path begins in the working directory.",
            discussion: "Default: broker.socket, else $PATCHBAY_SOCKET, else systemd's RuntimeDirectory, else "
                + "/run/patchbay/patchbay.sock for root and $XDG_RUNTIME_DIR/patchbay/patchbay.sock for others.",
            valueName: "path"
        )
    )
    var socket: String?

    @Option(
        help: ArgumentHelp(
            "The folder for persistent state; a relative path begins in the working directory.",
            discussion: "Default: broker.state_directory, else systemd's StateDirectory, else /var/lib/patchbay for "
                + "root and $XDG_STATE_HOME/patchbay (~/.local/state where that is not set) for others.",
            valueName: "folder"
        )
    )
    var stateDirectory: String?

    @Option(
        help: ArgumentHelp(
            "Log from this level on: \(Configuration.Broker.logLevels.joined(separator: ", ")).",
            discussion: "Default: broker.log_level, else info.",
            valueName: "level"
        )
    )
    var logLevel: String?

    @Flag(help: "Check the configuration and the profiles, and exit.")
    var checkConfig = false

    /// For `make example` and `packaging/manual`.
    @Flag(help: ArgumentHelp("Print config/patchbay.example.toml, and exit.", visibility: .hidden))
    var printExample = false

    func validate() throws {
        guard let logLevel, !Configuration.Broker.logLevels.contains(logLevel) else { return }
        throw ValidationError("--log-level must be one of \(Configuration.Broker.logLevels.joined(separator: ", ")).")
    }

    /// Replaces the parser's `main()`, so that errors have the same format as those of `patchbay`.
    static func main() async {
        do {
            let command = try parse()
            try await command.run()
        } catch {
            let code = exitCode(for: error)
            guard code != .success, !(error is ExitCode) else { exit(withError: error) }
            printError("error: \(message(for: error))\ntry: patchbayd --help")
            exit(withError: ExitCode(64))
        }
    }

    func run() async throws {
        if printExample { return print(ConfigurationExample.text, terminator: "") }
        ProcessLimits.disableCoreDumps()
        MallocTuning.apply()
        let environment = ProcessInfo.processInfo.environment
        do {
            let load = { @Sendable [config] () throws(ConfigurationError) in
                let loader = ConfigurationLoader(environment: environment)
                return try loader.load(
                    loader.file(explicit: config.map(AbsolutePath.of)),
                    installedProfiles: ProfileCatalog.installedFolder()
                )
            }
            let loaded = try load()
            if checkConfig {
                return print("\(Self.origin(of: loaded.configuration, environment)): the configuration is valid")
            }
            let daemon = try await Daemon(loaded, options: options, environment: environment, reload: load)
            try await daemon.run()
        } catch let error as ConfigurationError {
            Self.report(error.description, environment)
            throw ExitCode(78)
        } catch let error as DaemonError {
            Self.report(error.description, environment)
            throw ExitCode(error.exitCode)
        }
    }

    /// The options that replace keys of the file, in the names of the keys.
    private var options: [String: String] {
        var options: [String: String] = [:]
        options["broker.socket"] = socket.map(AbsolutePath.of)
        options["broker.state_directory"] = stateDirectory.map(AbsolutePath.of)
        options["broker.log_level"] = logLevel
        return options
    }

    /// The configuration file, or the paths at which none was found.
    static func origin(of configuration: Configuration, _ environment: [String: String]) -> String {
        if let file = configuration.file { return SanitizedText(file, limit: .max).text }
        let places = ConfigurationLoader(environment: environment).searchPaths.joined(separator: " nor at ")
        return "there is no file at \(places), so every key is at its default"
    }

    /// Prints each line of an error; the status line of the unit has the first one.
    private static func report(_ error: String, _ environment: [String: String]) {
        let lines = error.split(separator: "\n").map { "error: \($0)" }
        for line in lines { printError(line) }
        SystemdNotifier(environment: environment).failed(lines.first ?? "")
    }

    private static func printError(_ text: String) {
        StandardErrorWriter.standardError.write("\(text)\n")
    }
}

extension DaemonError {
    /// 78 (EX_CONFIG of sysexits.h) if another path would help; otherwise 1.
    fileprivate var exitCode: CInt {
        switch self {
        case .stateDirectory, .path: 78
        default: 1
        }
    }
}

/// The reason why the broker could not start.
enum DaemonError: Error, Equatable {
    case stateDirectory(path: String, reason: String)
    /// Another broker uses the state directory, and the two would overwrite each other's files. `holder` is nil if
    /// unknown.
    case stateDirectoryTaken(path: String, holder: String?)
    case socket(String)
    /// A path that is unsuitable for its purpose.
    case path(String)
    case activation(reason: String)
    case accessState(reason: String)
    /// A file in the state directory exists and cannot be read.
    case state(reason: String)
}

extension DaemonError: CustomStringConvertible {
    var description: String {
        switch self {
        case .stateDirectory(let path, let reason):
            "the state folder \(path) cannot be used: \(reason); name another with --state-directory"
        case .stateDirectoryTaken(let path, let holder):
            "the state folder \(path) is in use by \(holder ?? "another broker"); stop that one, or name another folder "
                + "with --state-directory"
        case .socket(let reason), .path(let reason): reason
        case .accessState(let reason): "the access state cannot be read: \(reason)"
        case .state(let reason): reason
        case .activation(let reason): "the socket that systemd passed cannot be used: \(reason)"
        }
    }
}
