import ArgumentParser
import SystemIO
import CLinux
import FoundationEssentials
import Glibc
import Logging
import Model
import Profiles

/// The command line of the broker daemon.
@main
struct Patchbayd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "patchbayd",
        abstract: "The Patchbay broker: finds debug servers, connects to them, and lists them all.",
        discussion: """
            Runs in the foreground until SIGTERM or Ctrl-C. SIGHUP is ignored; the configuration is read at startup \
            only. It starts without a configuration file, without Avahi and without usbmuxd, reports what is missing, \
            and uses each when it appears. `patchbay status` in another terminal shows its state.

              patchbayd
              patchbayd --config ./patchbay.toml --check-config
              patchbayd --socket /tmp/p.sock --state-dir /tmp/p

            Exit codes: 0 stopped on request or configuration valid, 1 failed to start or to run, 64 invalid command \
            line, 78 invalid configuration or path.
            """,
        version: Version.text
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
    var stateDir: String?

    @Flag(help: "Check the configuration and the profiles, and exit.")
    var checkConfig = false

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
        CoreDump.disable()
        // Freed memory of one malloc arena is not available to other threads. About a dozen threads exist, two of them
        // busy.
        CLinux_limit_heaps(2)
        // Blocks from 1 MiB on, such as screenshots, are mapped and returned to the system when freed.
        CLinux_map_blocks(1 << 20)
        let environment = ProcessInfo.processInfo.environment
        do {
            let loader = ConfigurationLoader(environment: environment)
            let file = loader.file(explicit: config)
            let profiles = try ProfileCatalog(
                installedFolder: ProfileCatalog.installedFolder(),
                userFolder: ProfileCatalog.userFolder(file: file, searchPaths: loader.searchPaths)
            )
            let configuration = try loader.load(file, profileKinds: profiles.profiles.map(\.kind))
            if checkConfig {
                return print("\(Self.origin(of: configuration, environment)): the configuration is valid")
            }
            let daemon = try await Daemon(
                configuration: configuration,
                profiles: profiles,
                socket: socket,
                stateDirectory: stateDir,
                environment: environment
            )
            try await daemon.run()
        } catch let error as ConfigurationError {
            for line in error.description.split(separator: "\n") { Self.printError("error: \(line)") }
            throw ExitCode(78)
        } catch let error as DaemonError {
            Self.printError("error: \(error)")
            throw ExitCode(error.exitCode)
        }
    }

    /// The configuration file, or the paths at which none was found.
    static func origin(of configuration: Configuration, _ environment: [String: String]) -> String {
        if let file = configuration.file { return SanitizedText(file, limit: .max).text }
        let places = ConfigurationLoader(environment: environment).searchPaths.joined(separator: " nor at ")
        return "there is no file at \(places), so every key is at its default"
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

/// Writes text to standard error, independent of the log level.
struct StandardErrorWriter: Sendable {
    static let standardError = StandardErrorWriter(descriptor: 2)
    let descriptor: CInt

    func write(_ text: String) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { return }
            bytes = bytes.dropFirst(count)
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
            "the state folder \(path) cannot be used: \(reason); name another with --state-dir"
        case .stateDirectoryTaken(let path, let holder):
            "the state folder \(path) is in use by \(holder ?? "another broker"); stop that one, or name another folder "
                + "with --state-dir"
        case .socket(let reason), .path(let reason): reason
        case .accessState(let reason): "the access state cannot be read: \(reason)"
        case .state(let reason): reason
        case .activation(let reason): "the socket that systemd passed cannot be used: \(reason)"
        }
    }
}
