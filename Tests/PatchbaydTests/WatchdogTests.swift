import FoundationEssentials
import Glibc
import Logging
import ServiceLifecycle
import SystemIO
import TestSupport
import Testing

@testable import patchbayd

@Suite(.scratchFolder) struct WatchdogTests {
    private let scratch = ScratchFolder.current

    /// Runs a feeder until a condition holds, and returns the messages that systemd got.
    private func messages(
        of checks: [WatchdogFeeder.Check],
        within microseconds: Int,
        output: CInt,
        until condition: @Sendable ([String]) -> Bool
    ) async throws -> [String] {
        let path = scratch.file("notify")
        let systemd = try DatagramListener(path)
        let environment = ["NOTIFY_SOCKET": path, "WATCHDOG_USEC": "\(microseconds)"]
        let feeder = WatchdogFeeder(
            notifier: SystemdNotifier(environment: environment),
            checks: checks,
            logger: Logger(label: "t") { _ in
                BrokerLogHandler(
                    journal: nil,
                    level: SharedLogLevel("info"),
                    output: StandardErrorWriter(descriptor: output)
                )
            }
        )
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await feeder.run() }
            var messages: [String] = []
            try await eventually("the condition holds") {
                while let next = systemd.receive() { messages.append(String(decoding: next, as: UTF8.self)) }
                return condition(messages)
            }
            group.cancelAll()
            return messages
        }
    }

    @Test func `the watchdog is fed while every part responds`() async throws {
        let check = WatchdogFeeder.Check(name: "registry") {}

        let messages = try await messages(of: [check], within: 20_000, output: 2) { $0.count > 3 }

        #expect(messages.allSatisfy { $0 == "WATCHDOG=1" })
    }

    @Test func `the watchdog is not fed while one part does not respond, and the log names the part`() async throws {
        let file = scratch.file("log")
        let output = open(file, O_CREAT | O_RDWR, 0o600)
        defer { close(output) }
        let checks = [
            WatchdogFeeder.Check(name: "registry") {},
            WatchdogFeeder.Check(name: "tunnels") { try? await Task.sleep(for: .seconds(600)) },
        ]

        let messages = try await messages(of: checks, within: 20_000, output: output) { _ in
            (try? String(contentsOfFile: file, encoding: .utf8))?.contains("parts=tunnels") == true
        }

        #expect(messages.isEmpty)
    }
}
