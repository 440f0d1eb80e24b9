import ArgumentParser
import SystemIO
import CLinux
import FoundationEssentials
import Glibc
import Logging
import Model

@main
struct Patchbayd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "patchbayd",
        abstract: "The Patchbay broker: finds debug servers, reaches them, and shows one list of them all.",
        discussion: """
            Runs in the foreground until SIGTERM or Ctrl-C; SIGHUP is ignored, and the configuration is read at the start \
            only. It starts without a configuration file, without Avahi and \
            without usbmuxd, says what is missing, and picks each up when it appears. `patchbay status` in another \
            terminal shows how it is.

              patchbayd
              patchbayd --config ./patchbay.toml --check-config
              patchbayd --socket /tmp/p.sock --state-dir /tmp/p

            Exit codes: 0 stopped as asked or configuration right, 1 it could not start or failed, 64 wrong command \
            line, 78 the configuration or a path is wrong.
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
            "The folder for what must outlive a restart; a relative path begins in the working directory.",
            discussion: "Default: broker.state_directory, else systemd's StateDirectory, else /var/lib/patchbay for "
                + "root and $XDG_STATE_HOME/patchbay (~/.local/state where that is not set) for others.",
            valueName: "folder"
        )
    )
    var stateDir: String?

    @Flag(help: "Read the configuration, say whether it is right, and exit.")
    var checkConfig = false

    /// Like the parser's own, but an error has the form that `patchbay` gives it.
    static func main() async {
        do {
            let command = try parse()
            try await command.run()
        } catch {
            let code = exitCode(for: error)
            guard code != .success, !(error is ExitCode) else { exit(withError: error) }
            complain("error: \(message(for: error))\ntry: patchbayd --help")
            exit(withError: ExitCode(64))
        }
    }

    func run() async throws {
        CoreDump.forbid()
        // What a thread frees in a heap of its own is of no use to the others; they are a dozen, and two of them are busy.
        CLinux_limit_heaps(2)
        // A block of a screenshot goes back to the system when it is freed.
        CLinux_map_blocks(1 << 20)
        let environment = ProcessInfo.processInfo.environment
        do {
            let configuration = try Configuration.load(explicit: config, environment: environment)
            if checkConfig {
                try configuration.check(environment)
                return print("\(Self.origin(of: configuration, environment)): all right")
            }
            let daemon = try await Daemon(
                configuration: configuration,
                socket: socket,
                stateDirectory: stateDir,
                environment: environment
            )
            try await daemon.run()
        } catch let error as ConfigurationError {
            Self.complain("error: \(error)")
            throw ExitCode(78)
        } catch let error as DaemonError {
            Self.complain("error: \(error)")
            throw ExitCode(error.exitCode)
        }
    }

    /// The file, or where none was found.
    static func origin(of configuration: Configuration, _ environment: [String: String]) -> String {
        if let file = configuration.file { return SanitizedText(file, limit: .max).text }
        let places = Configuration.places(environment).joined(separator: " nor at ")
        return "there is no file at \(places), so every key is at its default"
    }

    private static func complain(_ text: String) {
        StandardErrorWriter.standardError.write("\(text)\n")
    }
}

extension DaemonError {
    /// 78 (EX_CONFIG of sysexits.h) where another path would help, else 1.
    fileprivate var exitCode: CInt {
        switch self {
        case .stateDirectory, .path: 78
        default: 1
        }
    }
}

/// Standard error as a place for text that a person must see even when logging is off.
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

/// Why the broker could not start.
enum DaemonError: Error, Equatable {
    case stateDirectory(path: String, what: String)
    /// Two brokers would overwrite what the other one kept; `holder` is nil where the system does not tell.
    case stateDirectoryTaken(path: String, holder: String?)
    case socket(String)
    /// A path that cannot be what it is to be.
    case path(String)
    case activation(what: String)
    case pairing(what: String)
    /// A file of the state folder is there and cannot be read.
    case state(what: String)
}

extension DaemonError: CustomStringConvertible {
    var description: String {
        switch self {
        case .stateDirectory(let path, let what):
            "the state folder \(path) cannot be used: \(what); name another with --state-dir"
        case .stateDirectoryTaken(let path, let holder):
            "the state folder \(path) is in use by \(holder ?? "another broker"); stop that one, or name another folder "
                + "with --state-dir"
        case .socket(let what), .path(let what): what
        case .pairing(let what): "who may come in cannot be known: \(what)"
        case .state(let what): what
        case .activation(let what): "the socket that systemd passed cannot be used: \(what)"
        }
    }
}
