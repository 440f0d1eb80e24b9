package import Model
import SystemIO

/// The logs of the Android phones of an adb server.
package struct ADBLogSource: PhoneLogSource {
    private static let shortestPause = Duration.milliseconds(250)
    private static let longestPause = Duration.seconds(5)

    private let monitor: ADBDeviceMonitor
    private let clock: any Clock<Duration> = PollerClock()

    /// - Parameter monitor: Knows the phones, and opens their services.
    package init(_ monitor: ADBDeviceMonitor) { self.monitor = monitor }

    package func user(ofPort port: UInt16, on udid: UDID) async throws -> UInt32? {
        PhoneSockets(try await output(of: PhoneSockets.command(processes: []), on: udid)).users[port]
    }

    package func user(ofPackage package: SanitizedText, on udid: UDID) async throws -> UInt32? {
        guard let command = AppPortTable.userCommand(of: package.text) else { return nil }
        return AppPortTable.user(of: package.text, in: try await output(of: command, on: udid))
    }

    package func package(ofUser user: UInt32, on udid: UDID) async throws -> SanitizedText? {
        AppPortTable.package(in: try await output(of: AppPortTable.packageCommand(of: user), on: udid), of: user)
    }

    private func output(of command: String, on udid: UDID) async throws -> [UInt8] {
        try await Self.translated(udid) { try await PhoneShell(open: opener(of: udid)).output(of: command) }
    }

    package func past(of udid: UDID, user: UInt32?, lines: Int) async throws -> PhoneLogPast {
        try await Self.translated(udid) { try await reader(of: udid, user).past(lines: lines) }
    }

    private func reader(of udid: UDID, _ user: UInt32?) -> PhoneLogReader {
        PhoneLogReader(open: opener(of: udid), user: user)
    }

    private func opener(of udid: UDID) -> PhoneShell.Opener {
        { [monitor] in try await monitor.open($0, of: udid) }
    }

    private static func translated<Value>(_ udid: UDID, _ body: () async throws -> Value) async throws -> Value {
        do { return try await body() } catch let error as ADBError {
            throw DialError(.failed, "the log of phone \(udid) cannot be read: \(error)")
        }
    }

    package func follow(
        _ udid: UDID,
        user: UInt32?,
        from position: PhoneLogPosition,
        _ receive: @escaping @Sendable ([PhoneLogEvent<RawPhoneLogLine>]) -> Void
    ) async throws {
        let reader = reader(of: udid, user)
        var (position, isAway) = (position, false)
        var backoff = Backoff(from: Self.shortestPause, to: Self.longestPause)
        while true {
            do {
                position.resume()
                try await reader.follow(after: position.time) {
                    if isAway { receive([.note("phone \(udid) is back")]) }
                    isAway = false
                    backoff.reset()
                } _: { records in
                    let new = records.filter { position.read($0.bytes, time: $0.time) }
                    if !new.isEmpty { receive(new.map { .line($0.line) }) }
                }
            } catch is CancellationError { throw CancellationError() } catch {
                // The phone was unplugged, or the server stopped: the next attempt shows it.
            }
            try await backoff.wait(clock: clock)
            if await !monitor.isReachable(udid), !isAway {
                isAway = true
                receive([.note("phone \(udid) is not attached any more; its log goes on when it is back")])
            }
            if isAway { await waitForReturn(of: udid) }
        }
    }

    private func waitForReturn(of udid: UDID) async {
        for await phones in await monitor.reachablePhones() where phones.contains(where: { $0.udid == udid }) { return }
    }
}
