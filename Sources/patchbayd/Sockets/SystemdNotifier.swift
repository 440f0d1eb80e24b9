import CLinux
import FoundationEssentials
import Glibc
import Logging
import ServiceLifecycle
import UnixSignals

/// Reports the service state to systemd: one datagram per message to `$NOTIFY_SOCKET` (sd_notify(3)). Does nothing
/// without systemd.
struct SystemdNotifier: Sendable {
    private let address: String?
    /// The watchdog interval from `$WATCHDOG_USEC`; nil if the watchdog is off.
    let watchdog: Duration?

    init(environment: [String: String]) {
        address = environment["NOTIFY_SOCKET"]
        let isForUs = environment["WATCHDOG_PID"].map { Int32($0) == getpid() } ?? true
        let microseconds = environment["WATCHDOG_USEC"].flatMap { Int64($0) }
        watchdog = isForUs ? microseconds.flatMap { $0 > 0 ? .microseconds($0) : nil } : nil
    }

    func ready(_ status: String) { send("READY=1\nSTATUS=\(status)") }
    func stopping() { send("STOPPING=1") }
    func alive() { send("WATCHDOG=1") }

    private func send(_ message: String) {
        guard let address, !address.isEmpty else { return }
        var target = sockaddr_un()
        target.sun_family = sa_family_t(AF_UNIX)
        var path = Array(address.utf8)
        // A leading @ is an abstract socket, whose name begins with a zero byte (unix(7)).
        if path.first == UInt8(ascii: "@") { path[0] = 0 }
        guard path.count < MemoryLayout.size(ofValue: target.sun_path) else { return }
        withUnsafeMutableBytes(of: &target.sun_path) { $0.copyBytes(from: path) }
        let length = MemoryLayout<sa_family_t>.size + path.count
        let descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let bytes = Array(message.utf8)
        _ = withUnsafePointer(to: &target) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL), $0, socklen_t(length))
            }
        }
    }
}

/// Reports the start of the shutdown to systemd and in the log. Started last, and therefore stopped first.
struct SystemdStopNotifier: Service {
    let notifier: SystemdNotifier
    let logger: Logger

    func run() async throws {
        // Cancelled if another service fails, which stops the broker too.
        try? await gracefulShutdown()
        logger.info("patchbayd stops")
        notifier.stopping()
    }
}

/// Feeds systemd's watchdog while the broker responds. systemd restarts a broker that hangs.
struct WatchdogFeeder: Service {
    let notifier: SystemdNotifier
    /// Calls the actors that every other part needs.
    let healthCheck: @Sendable () async -> Void

    func run() async throws {
        guard let watchdog = notifier.watchdog else { return try await gracefulShutdown() }
        try? await cancelWhenGracefulShutdown {
            while true {
                await healthCheck()
                notifier.alive()
                // sd_watchdog_enabled(3) recommends half of the interval.
                try await Task.sleep(for: watchdog / 2)
            }
        }
    }
}

/// Ignores SIGHUP, which a closed terminal sends and which makes other daemons reload.
struct HangupSignalHandler: Service {
    private let signals: UnixSignalsSequence
    private let logger: Logger

    /// Installs the signal handler.
    init(logger: Logger) async {
        signals = await UnixSignalsSequence(trapping: .sighup)
        self.logger = logger
    }

    func run() async throws {
        for await _ in signals.cancelOnGracefulShutdown() {
            logger.notice(
                "SIGHUP is ignored: the configuration is read at startup only",
                metadata: ["hint": "restart patchbayd to apply changes"]
            )
        }
    }
}
