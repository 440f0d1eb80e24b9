import Model
import Samples
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Devices

@Suite(.timeLimit(.minutes(1))) struct DeviceDirectoryTests {
    /// A usbmuxd whose only phone is plugged in and unplugged by the test.
    private final class Cable: Sendable {
        private let listener = Mutex<FakeClient?>(nil)
        private let deviceID = Mutex(0)
        private let isPaired = Mutex(false)

        func serve(_ client: FakeClient) {
            switch client.request() {
            case "Listen": break
            case "ReadPairRecord":
                let record = "<dict><key>PairRecordData</key><data>YQ==</data></dict>"
                let isPaired = isPaired.withLock { $0 }
                return client.send(isPaired ? MuxMessage.propertyList(record) : MuxMessage.result(2))
            default: return client.send(MuxMessage.propertyList(MuxMessage.list([])))
            }
            client.send(MuxMessage.result(0))
            listener.withLock { $0 = client }
            attach()
            client.waitForEnd()
        }

        func attach() {
            let number = deviceID.withLock { number in
                number += 1
                return number
            }
            send(MuxMessage.attached(number, Phones.one))
        }

        func detach() { send(MuxMessage.detached(deviceID.withLock { $0 })) }

        /// Saves a pair record, as after a tap on Trust.
        func pair() {
            isPaired.withLock { $0 = true }
            send(MuxMessage.paired(deviceID.withLock { $0 }))
        }

        private func send(_ message: String) {
            listener.withLock { $0 }?.send(MuxMessage.propertyList(message, tag: 0))
        }
    }

    /// The snapshots of a running directory in order.
    private struct Snapshots {
        var iterator: AsyncStream<DeviceDirectory.Snapshot>.Iterator

        /// Returns the next snapshot that meets the condition.
        mutating func first(
            where isWanted: (DeviceDirectory.Snapshot) -> Bool
        ) async throws -> DeviceDirectory.Snapshot {
            while let snapshot = await iterator.next() {
                if isWanted(snapshot) { return snapshot }
            }
            throw TestSupportError("the directory ended without the wanted snapshot")
        }
    }

    @Test func `a phone is listed at once, and its name follows`() async throws {
        let dialer = FakeDialer.connected()
        try await withDirectory(dialer) { snapshots, _ in
            let first = try await snapshots.first { !$0.devices.isEmpty }
            #expect(first.devices.first?.name == nil)
            #expect(first.unanswered.map(\.text) == [Phones.one])

            try await Self.answer(dialer, name: "Anna’s iPhone")

            let named = try await snapshots.first { $0.devices.first?.name != nil }
            #expect(named.devices.first?.name?.text == "Anna’s iPhone")
            #expect(named.devices.first?.productType?.text == "iPhone15,3")
            #expect(named.devices.first?.productVersion?.text == "17.5")
            #expect(named.unanswered == [])
            #expect(named.devices.first?.id == first.devices.first?.id)
        }
    }

    @Test func `a device without lockdownd stays without a name`() async throws {
        let dialer = FakeDialer { _ in throw DialError(.refused, "nothing listens there") }
        try await withDirectory(dialer) { snapshots, _ in
            let answered = try await snapshots.first { !$0.devices.isEmpty && $0.unanswered.isEmpty }

            #expect(answered.devices.map(\.udid.text) == [Phones.one])
            #expect(answered.devices.first?.name == nil)
        }
    }

    @Test func `a silent phone delays nothing for longer than 250 ms`() async throws {
        let clock = ManualClock()
        try await withDirectory(FakeDialer.silent(), clock: clock) { snapshots, _ in
            _ = try await snapshots.first { !$0.unanswered.isEmpty }
            // The timeout of the request and the grace period.
            await clock.waitForSleepers(2)

            clock.advance(by: .milliseconds(250))

            _ = try await snapshots.first { !$0.devices.isEmpty && $0.unanswered.isEmpty }
        }
    }

    @Test func `a locked phone says so until it is unlocked, and is asked again`() async throws {
        let clock = ManualClock()
        let dialer = FakeDialer.connected()
        try await withDirectory(dialer, clock: clock) { snapshots, _ in
            try await Self.answer(dialer, error: "PasswordProtected")
            let locked = try await snapshots.first { $0.devices.first?.state == .locked }
            #expect(locked.unanswered.isEmpty && locked.devices.first?.isReady == true)
            #expect(dialer.routes.count == 1)
            // Less than the timeout of the next request, which may begin between two steps.
            try await eventually("the phone is asked again") {
                clock.advance(by: .milliseconds(500))
                return dialer.routes.count == 2
            }

            try await Self.answer(dialer, name: "Anna’s iPhone")

            let unlocked = try await snapshots.first { $0.devices.first?.name?.text == "Anna’s iPhone" }
            #expect(unlocked.devices.first?.state == .ready)
        }
    }

    @Test func `a phone is not paired until usbmuxd saves the record`() async throws {
        try await withDirectory(FakeDialer.connected()) { snapshots, cable in
            let first = try await snapshots.first { $0.devices.first?.isPaired != nil }
            #expect(first.devices.first?.isPaired == false && first.devices.first?.isReady == true)

            cable.pair()

            let next = try await snapshots.first { $0.devices.first?.isPaired == true }
            #expect(next.devices.first?.state == .ready)
        }
    }

    @Test func `a phone that refuses is asked once per attachment`() async throws {
        let dialer = FakeDialer.connected()
        try await withDirectory(dialer) { snapshots, cable in
            try await Self.answer(dialer, error: "GetProhibited")
            _ = try await snapshots.first { !$0.devices.isEmpty && $0.unanswered.isEmpty }
            cable.detach()
            _ = try await snapshots.first { $0.devices.isEmpty }
            #expect(dialer.routes.count == 1)

            cable.attach()
            try await Self.answer(dialer, name: "Anna’s iPhone")

            _ = try await snapshots.first { $0.devices.first?.name?.text == "Anna’s iPhone" }
            #expect(dialer.routes.count == 2)
        }
    }

    @Test func `a replugged phone has its name at once, and a new name replaces it`() async throws {
        let dialer = FakeDialer.connected()
        try await withDirectory(dialer) { snapshots, cable in
            try await Self.answer(dialer, name: "Anna’s iPhone")
            _ = try await snapshots.first { $0.devices.first?.name != nil }
            cable.detach()
            _ = try await snapshots.first { $0.devices.isEmpty }

            cable.attach()
            let remembered = try await snapshots.first { !$0.devices.isEmpty }
            #expect(remembered.devices.first?.name?.text == "Anna’s iPhone")
            #expect(remembered.unanswered == [])
            try await Self.answer(dialer, name: "Bert’s iPhone")

            _ = try await snapshots.first { $0.devices.first?.name?.text == "Bert’s iPhone" }
        }
    }

    /// Runs a directory whose phone is plugged in while the body runs.
    private func withDirectory(
        _ dialer: FakeDialer,
        clock: any Clock<Duration> = ContinuousClock(),
        _ body: (inout Snapshots, Cable) async throws -> Void
    ) async throws {
        try await withScratchFolder { scratch in
            let cable = Cable()
            let fake = try FakeUsbmuxd(in: scratch) { cable.serve($0) }
            try await withMonitor(at: fake.address) { monitor in
                let directory = DeviceDirectory(of: monitor, dialer: dialer, logger: .quiet, clock: clock)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { try await directory.run() }
                    defer { group.cancelAll() }
                    var snapshots = Snapshots(iterator: directory.snapshots.makeAsyncIterator())
                    try await body(&snapshots, cable)
                }
            }
        }
    }

    /// Answers the requests on the next connection with these values.
    private static func answer(_ dialer: FakeDialer, name: String) async throws {
        let values = [("DeviceName", name), ("ProductType", "iPhone15,3"), ("ProductVersion", "17.5")]
        try await answer(dialer, values.map { LockdownServer.reply($0, value: $1) })
    }

    /// Answers the first request on the next connection with an error.
    private static func answer(_ dialer: FakeDialer, error: String) async throws {
        try await answer(dialer, [LockdownServer.reply("DeviceName", error: error)])
    }

    private static func answer(_ dialer: FakeDialer, _ replies: [[UInt8]]) async throws {
        var peers = dialer.peers.makeAsyncIterator()
        let phone = try #require(await peers.next())
        for reply in replies {
            let length = try await phone.receive(4).reduce(0) { $0 << 8 | Int($1) }
            _ = try await phone.receive(length)
            try await phone.send(reply)
        }
    }
}
