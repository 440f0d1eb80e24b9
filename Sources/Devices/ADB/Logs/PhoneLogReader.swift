import Model
import SystemIO

/// Reads the log of one phone with its `logcat`, which ends with the connection.
///
/// The phone filters the lines of a user if its logcat can (`--uid`, since Android 12), and the reader filters them in
/// any case. The number of past lines is counted here, because logcat counts before it filters.
struct PhoneLogReader: Sendable {
    /// The end of a run of logcat.
    private enum End {
        /// It ended by itself.
        case finished
        /// It does not know the option `--uid`.
        case refused
    }

    private static let command = "logcat -v threadtime -v uid"
    private static let chunk = 64 << 10
    /// The longest line that is read. Behind the limit of a text, a reader still finds a secret that begins before it.
    private static let lineLimit = RawPhoneLogLine.textLimit + 4_096
    /// The maximum memory for past lines in bytes.
    private static let pastLimit = 4 << 20
    /// The maximum time for past lines. What was read until then counts.
    private static let pastTimeout = Duration.seconds(15)

    let open: PhoneShell.Opener
    /// The user whose lines are read; nil for those of all users.
    let user: UInt32?
    let clock: any Clock<Duration> = PollerClock()

    /// Returns the newest lines.
    ///
    /// - Throws: `ADBError`, `DialError`, `CancellationError`.
    func past(lines limit: Int) async throws -> PhoneLogPast {
        // Without a filter, the phone can count.
        let options = user == nil ? " -t \(max(1, limit))" : " -d"
        let tail = LogTail(limit: limit, byteLimit: Self.pastLimit)
        let end: Void? = try await withTimeout(Self.pastTimeout, clock: clock) { try await read(options, tail.append) }
        let past = tail.past
        guard end != nil || !past.position.time.isEmpty else {
            throw ADBError.timedOut(request: Self.command + options, limit: Self.pastTimeout)
        }
        return past
    }

    /// Reads new lines until logcat ends, or the connection to the phone.
    ///
    /// - Parameters:
    ///   - time: The time of the last line, whose lines come again; empty for the beginning of the log.
    ///   - opened: Called when the phone has accepted the command.
    ///   - receive: Called with the lines in order, by one task.
    /// - Throws: `ADBError`, `DialError`, `CancellationError`.
    func follow(after time: [UInt8], opened: () -> Void, _ receive: ([LogRecord]) -> Void) async throws {
        // The time has digits and signs only (`LogRecord`).
        let options = time.isEmpty ? "" : " -T '\(String(decoding: time, as: UTF8.self))'"
        try await read(options, opened: opened, receive)
    }

    private func read(
        _ options: String,
        opened: () -> Void = {},
        _ receive: ([LogRecord]) -> Void
    ) async throws {
        if let user {
            let end = try await run(Self.command + " --uid=\(user)" + options, opened: opened, receive)
            guard end == .refused else { return }
        }
        _ = try await run(Self.command + options, opened: opened, receive)
    }

    private func run(_ command: String, opened: () -> Void, _ receive: ([LogRecord]) -> Void) async throws -> End {
        let connection = try await open(.shellWithPackets(command))
        opened()
        var (packets, lines, budget) = (ShellPacketDecoder(), LogLineDecoder(cut: Self.lineLimit), LogBudget())
        var (hadOutput, hadError) = (false, false)
        let timer = ElapsedTimer(clock)
        while true {
            let bytes = try await connection.receive(atMost: Self.chunk, for: "the log")
            for event in packets.read(bytes) {
                switch event {
                case .output(let output):
                    hadOutput = true
                    let records = lines.read(output).compactMap { LogRecord($0) }
                    receive(user == nil ? records : records.filter { $0.userID == user })
                case .error: hadError = true
                case .exit(let code): return code != 0 && hadError && !hadOutput ? .refused : .finished
                }
            }
            let pause = budget.pause(after: bytes.count, at: timer.elapsed)
            if pause > .zero { try await clock.sleep(for: pause) }
        }
    }
}
