import Logging
import Model
import Synchronization
import SystemIO

/// Follows the log and the processes of one phone, and reports the ports of its apps.
///
/// It runs one `logcat` on the phone, which filters there, and one `track-app`. The sockets are read after news only.
final class PhoneAppFollower: Sendable {
    /// The log from its oldest line, so that an app that was started before Patchbay is found too.
    static let logCommand = "logcat -v threadtime -v uid -s AppReveal:I flutter:I"
    private static let shortestPause = Duration.seconds(1)
    private static let longestPause = Duration.seconds(60)
    private static let chunk = 64 << 10

    private let shell: PhoneShell
    private let report: @Sendable ([PhonePort]) -> Void
    private let clock: any Clock<Duration>
    private let logger: Logger
    private let table = Mutex(AppPortTable())
    private let reported = Mutex<[PhonePort]?>(nil)
    private let news = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// - Parameters:
    ///   - open: Opens a service of the phone.
    ///   - timeout: The maximum time for a command of the phone's shell.
    ///   - clock: The clock of pauses and time limits.
    ///   - logger: The logger.
    ///   - report: Called by one task with all ports, first and after each change.
    init(
        open: @escaping PhoneShell.Opener,
        timeout: Duration = .seconds(5),
        clock: any Clock<Duration> = PollerClock(),
        logger: Logger,
        report: @escaping @Sendable ([PhonePort]) -> Void
    ) {
        shell = PhoneShell(open: open, timeout: timeout, clock: clock)
        (self.clock, self.logger, self.report) = (clock, logger, report)
    }

    /// Follows the phone until cancelled.
    func run() async {
        news.continuation.yield()
        await withDiscardingTaskGroup { group in
            group.addTask { [self] in await repeatedly("log", readLog) }
            group.addTask { [self] in await repeatedly("processes", readProcesses) }
            group.addTask { [self] in for await _ in news.stream { await readSockets() } }
        }
    }

    /// Reads a stream of the phone again after each of its ends. The pauses begin anew after a stream that had data.
    private func repeatedly(_ name: String, _ read: (_ hadData: () -> Void) async throws -> Void) async {
        var backoff = Backoff(from: Self.shortestPause, to: Self.longestPause)
        while !Task.isCancelled {
            var hadData = false
            do { try await read { hadData = true } } catch {
                logger.debug("a stream of a phone ended", metadata: ["stream": "\(name)", "reason": "\(error)"])
            }
            if hadData { backoff.reset() }
            do { try await backoff.wait(clock: clock) } catch { return }
        }
    }

    private func readLog(_ hadData: () -> Void) async throws {
        let connection = try await shell.open(.shellWithPackets(Self.logCommand))
        var (packets, lines, budget) = (ShellPacketDecoder(), LogLineDecoder(), LogBudget())
        let timer = ElapsedTimer(clock)
        while true {
            let bytes = try await connection.receive(atMost: Self.chunk, for: "the log")
            var isNews = false
            for case .output(let output) in packets.read(bytes) {
                hadData()
                let read = lines.read(output).compactMap { LogLine($0) }
                isNews = table.withLock { table in read.reduce(isNews) { table.read($1) || $0 } }
            }
            if isNews { news.continuation.yield() }
            let pause = budget.pause(after: bytes.count, at: timer.elapsed)
            if pause > .zero { try await clock.sleep(for: pause) }
        }
    }

    /// Reads the lists of processes. Phones before Android 12 refuse the service.
    private func readProcesses(_ hadData: () -> Void) async throws {
        let connection = try await shell.open(.trackApps)
        var (decoder, budget) = (ADBTextDecoder(), ADBListBudget())
        while true {
            decoder.append(try await connection.receive(atMost: decoder.bytesNeeded, for: "the list of processes"))
            guard let message = try decoder.next() else { continue }
            guard let processes = ProcessList.processIDs(in: message) else {
                throw ADBError.malformedAnswer("a list of processes that is no message")
            }
            hadData()
            if table.withLock({ $0.set(processes: processes) }) { news.continuation.yield() }
            // A phone that never stops would keep a thread of all tasks busy: there is always something to receive.
            if let pause = budget.pause(at: .now) { try await clock.sleep(for: pause) }
        }
    }

    /// Reads the sockets until there is no reason to read them again.
    private func readSockets() async {
        while !Task.isCancelled {
            let wanted = table.withLock { $0.wantedProcesses }
            do {
                let sockets = PhoneSockets(try await shell.output(of: PhoneSockets.command(processes: wanted.sorted())))
                table.withLock { $0.apply(sockets, wanted: wanted) }
            } catch {
                logger.debug("cannot read the sockets of a phone", metadata: ["reason": "\(error)"])
                table.withLock { $0.skip() }
            }
            for user in table.withLock({ $0.usersWithoutPackage }) {
                let list = try? await shell.output(of: AppPortTable.packageCommand(of: user))
                let package = list.flatMap { AppPortTable.package(in: $0, of: user) }
                table.withLock { $0.set(package: package, of: user) }
            }
            let (ports, pause) = table.withLock { ($0.ports, $0.pause) }
            if reported.withLock({ reported in
                defer { reported = ports }
                return reported != ports
            }) {
                report(ports)
            }
            guard let pause, (try? await clock.sleep(for: pause)) != nil else { return }
        }
    }

    /// Returns whether the app that is behind a port now is the one that wrote to the log.
    func isOwner(of port: PhonePort) async -> Bool {
        guard let announcement = port.announcement,
            let output = try? await shell.output(of: PhoneSockets.command(processes: [announcement.processID]))
        else { return false }
        let sockets = PhoneSockets(output)
        return sockets.users[port.port] == port.user && sockets.processes[announcement.processID] == port.user
    }
}
