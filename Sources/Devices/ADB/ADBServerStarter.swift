import Glibc
import Logging
import SystemIO

/// Starts an adb server of this machine where none runs.
struct ADBServerStarter: Sendable {
    private static let programs = ["/usr/bin/adb", "/usr/local/bin/adb", "/usr/lib/android-sdk/platform-tools/adb"]
    private static let timeout = Duration.seconds(10)

    private let arguments: [String]
    private let logger: Logger

    /// Returns nil for a server on another machine, which cannot be started from here.
    init?(_ address: ServerAddress, logger: Logger) {
        guard address.isLocal else { return nil }
        let socket =
            switch address {
            case .unix(let path): "localfilesystem:\(path)"
            // adb does not listen on a port of a named address; without one it takes the loopback.
            case .tcp(_, let port): "tcp:\(port)"
            }
        arguments = ["-L", socket, "start-server"]
        self.logger = logger
    }

    /// Runs `adb start-server`, which ends when the server answers. The server runs on.
    func start() async {
        guard let program = Self.programs.first(where: { access($0, X_OK) == 0 }) else { return }
        let exit = try? await withTimeout(Self.timeout, clock: PollerClock()) {
            try await ChildProcess(program, arguments, announcing: "* daemon started").exit()
        }
        let reason = exit.flatMap { $0 }.map { $0.status == 0 ? "" : $0.errorOutput } ?? "it did not end in time"
        logger.info("ran adb start-server", metadata: ["program": "\(program)", "error": "\(reason)"])
    }
}
