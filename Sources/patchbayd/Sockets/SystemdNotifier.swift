import CLinux
import FoundationEssentials
import Glibc
import Logging
import ServiceLifecycle
import UnixSignals

/// Tells systemd how we are: one datagram to `$NOTIFY_SOCKET` for each thing said (sd_notify(3)). Silent elsewhere.
struct SystemdNotifier: Sendable {
    private let address: String?
    /// How often the watchdog must hear from us, from `$WATCHDOG_USEC`; nil when it does not listen.
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

/// Tells systemd and the operator that we stop, as soon as we begin to: started last, it is the first to be stopped.
struct ShutdownNotifier: Service {
    let notifier: SystemdNotifier
    let logger: Logger

    func run() async throws {
        // Cancelled when another service fails, which ends us as well.
        try? await gracefulShutdown()
        logger.info("patchbayd stops")
        notifier.stopping()
    }
}

/// Feeds systemd's watchdog, but only as long as the registry answers: a broker that hangs is to be restarted.
struct WatchdogFeeder: Service {
    let notifier: SystemdNotifier
    /// Goes through the actors that everything else needs.
    let pulse: @Sendable () async -> Void

    func run() async throws {
        guard let watchdog = notifier.watchdog else { return try await gracefulShutdown() }
        try? await cancelWhenGracefulShutdown {
            while true {
                await pulse()
                notifier.alive()
                // Half of the limit is what sd_watchdog_enabled(3) advises.
                try await Task.sleep(for: watchdog / 2)
            }
        }
    }
}

/// Keeps SIGHUP from ending the broker: a terminal that is closed sends it, and other daemons reload when they get it.
struct HangupNotice: Service {
    private let signals: UnixSignalsSequence
    private let logger: Logger

    /// From here on the signal ends nothing.
    init(logger: Logger) async {
        signals = await UnixSignalsSequence(trapping: .sighup)
        self.logger = logger
    }

    func run() async throws {
        for await _ in signals.cancelOnGracefulShutdown() {
            logger.notice(
                "SIGHUP is ignored: the configuration is read at the start",
                metadata: ["next": "restart patchbayd to apply a change of it"]
            )
        }
    }
}
