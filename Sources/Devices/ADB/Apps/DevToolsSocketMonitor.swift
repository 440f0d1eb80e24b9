package import Logging
package import Model
import ServiceLifecycle
import Synchronization
import SystemIO

/// Finds the pages of Chrome and of WebViews on Android phones, which listen on abstract sockets.
///
/// The sockets are read when a phone is attached and then at an interval, by one command that filters on the phone.
package final class DevToolsSocketMonitor: Service {
    private static let interval = Duration.seconds(10)
    private static let timeout = Duration.seconds(5)
    /// The maximum size of the output of a command in bytes.
    private static let outputLimit = 64 << 10

    /// The sightings, for a single consumer.
    package let events: AsyncStream<SightingEvent>

    private struct Phone: Sendable {
        /// Tells two stays of a phone apart.
        let stay: UInt64
        var table: DevToolsSocketTable
    }

    private struct State: Sendable {
        var phones: [UDID: Phone] = [:]
        var stays: UInt64 = 0
    }

    private let monitor: ADBDeviceMonitor
    private let clock: any Clock<Duration>
    private let logger: Logger
    private let state = Mutex(State())
    private let continuation: AsyncStream<SightingEvent>.Continuation
    private let arrivals = AsyncStream.makeStream(of: (udid: UDID, stay: UInt64).self)

    /// - Parameters:
    ///   - monitor: Opens the services of the phones.
    ///   - clock: The clock of the interval and the time limit.
    ///   - logger: The logger.
    package init(of monitor: ADBDeviceMonitor, clock: any Clock<Duration> = PollerClock(), logger: Logger) {
        (self.monitor, self.clock, self.logger) = (monitor, clock, logger)
        (events, continuation) = AsyncStream.makeStream(of: SightingEvent.self)
    }

    /// Sets the connected phones. Reports the sockets of disconnected ones as lost at once.
    package func set(devices: Set<UDID>) {
        let phones = devices.filter { $0.platform == .android }
        state.withLock { state in
            for udid in state.phones.keys where !phones.contains(udid) {
                for event in state.phones[udid]?.table.removeAll() ?? [] { continuation.yield(event) }
                state.phones[udid] = nil
            }
            for udid in phones where state.phones[udid] == nil {
                state.stays += 1
                state.phones[udid] = Phone(stay: state.stays, table: DevToolsSocketTable(of: udid))
                arrivals.continuation.yield((udid, state.stays))
            }
        }
    }

    /// Reads the sockets of connected phones until graceful shutdown or cancellation. Each phone has a task of its own.
    package func run() async throws {
        defer { continuation.finish() }
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                for await (udid, stay) in arrivals.stream { group.addTask { [self] in await follow(udid, stay) } }
                group.cancelAll()
            }
        }
    }

    private func follow(_ udid: UDID, _ stay: UInt64) async {
        while let table = state.withLock({ $0.phones[udid] }), table.stay == stay {
            do { try await read(udid, table) } catch {
                logger.debug(
                    "cannot read the DevTools sockets of a phone",
                    metadata: ["udid": "\(udid)", "reason": "\(error)"]
                )
            }
            do { try await clock.sleep(for: Self.interval) } catch { return }
        }
    }

    private func read(_ udid: UDID, _ phone: Phone) async throws {
        let sockets = DevToolsSocket.listed(in: try await output(of: DevToolsSocket.command, on: udid))
        var commandLines: [DevToolsSocket: [UInt8]] = [:]
        for socket in phone.table.unknown(among: sockets) {
            guard let process = socket.processID else { continue }
            commandLines[socket] = try await output(of: "cat /proc/\(process)/cmdline", on: udid)
        }
        state.withLock { state in
            guard state.phones[udid]?.stay == phone.stay else { return }
            let events = state.phones[udid]?.table.apply(sockets, commandLines: commandLines) ?? []
            for event in events { continuation.yield(event) }
        }
    }

    /// - Throws: `DialError` if the phone cannot be reached; `ADBError`; `CancellationError`.
    private func output(of command: String, on udid: UDID) async throws -> [UInt8] {
        let output = try await withTimeout(Self.timeout, clock: clock) { [monitor] in
            let connection = try await monitor.open(.shell(command), of: udid)
            var output: [UInt8] = []
            while output.count < Self.outputLimit {
                do {
                    output += try await connection.receive(atMost: Self.outputLimit - output.count, for: command)
                } catch ADBError.closed { break }
            }
            return output
        }
        guard let output else { throw ADBError.timedOut(request: command, limit: Self.timeout) }
        return output
    }
}
