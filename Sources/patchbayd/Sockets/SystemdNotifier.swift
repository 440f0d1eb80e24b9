import CLinux
import FoundationEssentials
import Glibc
import Logging
import ServiceLifecycle
import Synchronization
import SystemIO

/// Reports the service state to systemd: one datagram per message to `$NOTIFY_SOCKET` (sd_notify(3)). Does nothing
/// without systemd.
struct SystemdNotifier: Sendable {
    private let socket: DatagramSocket?
    /// The watchdog interval from `$WATCHDOG_USEC`; nil if the watchdog is off.
    let watchdog: Duration?

    init(environment: [String: String]) {
        socket = environment["NOTIFY_SOCKET"].flatMap { DatagramSocket(to: $0) }
        let isForUs = environment["WATCHDOG_PID"].map { Int32($0) == getpid() } ?? true
        let microseconds = environment["WATCHDOG_USEC"].flatMap { Int64($0) }
        watchdog = isForUs ? microseconds.flatMap { $0 > 0 ? .microseconds($0) : nil } : nil
    }

    func ready(_ status: String?) { send("READY=1" + (status.map { "\nSTATUS=\($0)" } ?? "")) }

    /// Reports the begin of a reload; `ready` reports its end. systemd needs the time of the monotonic clock.
    func reloading() {
        send("RELOADING=1\nMONOTONIC_USEC=\(CLinux_nanoseconds(CLOCK_MONOTONIC) / 1_000)")
    }

    /// Leaves the reason of a failed start in the status line of the unit.
    func failed(_ status: String) { send("STATUS=\(status)") }

    func stopping() { send("STOPPING=1") }
    func alive() { send("WATCHDOG=1") }

    private func send(_ message: String) { socket?.send(Array(message.utf8), waits: true) }
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

/// Feeds systemd's watchdog while every part of the broker responds. systemd restarts a broker that hangs.
struct WatchdogFeeder: Service {
    /// A part that every other part needs, and a call that returns when the part responds.
    struct Check: Sendable {
        let name: String
        let call: @Sendable () async -> Void
    }

    let notifier: SystemdNotifier
    let checks: [Check]
    let logger: Logger

    func run() async throws {
        guard let watchdog = notifier.watchdog else { return try await gracefulShutdown() }
        try? await cancelWhenGracefulShutdown {
            while true {
                try await respond(within: watchdog / 2)
                notifier.alive()
                // sd_watchdog_enabled(3) recommends half of the interval.
                try await Task.sleep(for: watchdog / 2)
            }
        }
    }

    /// Waits until every part has responded. After half of the interval, logs the parts that have not.
    private func respond(within limit: Duration) async throws {
        let waiting = WaitingParts(Set(checks.map(\.name)))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [logger] in
                // The watchdog's own limit. A response ends the wait.
                try await Task.sleep(for: limit)
                let names = waiting.names.withLock { $0.sorted().joined(separator: ", ") }
                logger.critical(
                    "parts of the broker do not respond, and the watchdog is not fed",
                    metadata: ["parts": "\(names)"]
                )
            }
            try await withThrowingTaskGroup(of: Void.self) { calls in
                for check in checks {
                    calls.addTask {
                        await check.call()
                        _ = waiting.names.withLock { $0.remove(check.name) }
                    }
                }
                try await calls.waitForAll()
            }
            group.cancelAll()
        }
    }

    /// The parts that have not responded yet.
    private final class WaitingParts: Sendable {
        let names: Mutex<Set<String>>

        init(_ names: Set<String>) { self.names = Mutex(names) }
    }
}
