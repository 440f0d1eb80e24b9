import Glibc
import Model
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Devices

@Suite(.scratchFolder) struct UsbmuxPlannerTests {
    private let scratch = ScratchFolder.current

    private static func route(_ udid: String = Phones.one, port: UInt16 = 9876) throws -> Route {
        .usb(USBRoute(udid: try #require(UDID(udid)), port: port))
    }

    /// The reason for a failed dial; nil if the dial succeeded.
    private static func reason(_ dialer: UsbmuxPlanner, _ route: Route) async throws -> DialError.Reason? {
        do {
            _ = try await dialer.dial(route)
            return nil
        } catch let failure as DialError { return failure.reason }
    }

    @Test func `a device is dialed by its UDID`() async throws {
        let fake = try FakeUsbmuxd(in: scratch) { $0.behave(phones: [(41, Phones.one)], welcome: "hello") }
        try await withMonitor(at: fake.address) { monitor in
            try await eventually("the phone is listed") { await monitor.devices().count == 1 }

            let connection = try await monitor.planner.dial(try Self.route())

            #expect(try await connection.receive(5) == Array("hello".utf8))
            #expect(connection.halfClose == .destroys)
        }
    }

    @Test func `each reason for a failed dial is distinguished`() async throws {
        let code = Mutex<UInt32>(3)
        let fake = try FakeUsbmuxd(in: scratch) { client in
            client.behave(phones: [(1, Phones.one)], connect: code.withLock { $0 })
        }
        let connectionLimit = FairLimiter<UDID>(limit: 1)
        let client = NativeUsbmuxClient(
            address: fake.address,
            connectionLimit: connectionLimit,
            connectTimeout: .milliseconds(100)
        )
        try await withMonitor(at: fake.address, client: client) { monitor in
            try await eventually("the phone is listed") { await monitor.devices().count == 1 }
            let dialer = monitor.planner

            #expect(try await Self.reason(dialer, try Self.route()) == .refused)
            code.withLock { $0 = 1 }
            #expect(try await Self.reason(dialer, try Self.route()) == .refused)
            code.withLock { $0 = 2 }
            #expect(try await Self.reason(dialer, try Self.route()) == .deviceAbsent)
            #expect(try await Self.reason(dialer, try Self.route(Phones.two)) == .deviceAbsent)
            #expect(try await Self.reason(dialer, try Self.route(port: 0)) == .failed)
            let lan = Route.network(NetworkRoute(address: "127.0.0.1", port: 1))
            #expect(try await Self.reason(dialer, lan) == .noRoute)
            let other = try #require(UDID(Phones.two))
            let lease = try #require(connectionLimit.permit(other))
            #expect(try await Self.reason(dialer, try Self.route()) == .limit)
            withExtendedLifetime(lease) {}
            fake.stop()
            try await eventually("usbmuxd is gone") { await monitor.devices().isEmpty }
            #expect(try await Self.reason(dialer, try Self.route()) == .usbmuxdAbsent)
        }
    }

    @Test func `a stream holds a permit until the stream is closed`() async throws {
        let fake = try FakeUsbmuxd(in: scratch) { $0.behave(phones: [(1, Phones.one)]) }
        let connectionLimit = FairLimiter<UDID>(limit: 1)
        let client = NativeUsbmuxClient(
            address: fake.address,
            connectionLimit: connectionLimit,
            connectTimeout: .milliseconds(300)
        )
        try await withMonitor(at: fake.address, client: client) { monitor in
            try await eventually("the phone is listed") { await monitor.devices().count == 1 }
            do {
                let first = try await monitor.planner.dial(try Self.route())
                #expect(try await Self.reason(monitor.planner, try Self.route()) == .limit)
                let released = first.release()
                #expect(connectionLimit.count == 1)
                _ = withExtendedLifetime(released.permit) { close(released.number) }
            }
            #expect(connectionLimit.count == 0)

            #expect(try await Self.reason(monitor.planner, try Self.route()) == nil)
        }
    }

    @Test func `a device that never answers is a dial timeout`() async throws {
        let fake = try FakeUsbmuxd(in: scratch) { client in
            guard client.request() == "Listen" else { return client.waitForEnd() }
            client.send(MuxMessage.result(0) + MuxMessage.propertyList(MuxMessage.attached(1, Phones.one), tag: 0))
            client.waitForEnd()
        }
        let client = NativeUsbmuxClient(address: fake.address, connectTimeout: .milliseconds(100))
        try await withMonitor(at: fake.address, client: client) { monitor in
            try await eventually("the phone is listed") { await monitor.devices().count == 1 }

            #expect(try await Self.reason(monitor.planner, try Self.route()) == .timedOut)
        }
    }

    @Test func `the bad device result of each 65,536th Connect is retried once`() async throws {
        let connects = Mutex(0)
        let fake = try FakeUsbmuxd(in: scratch) { client in
            let text = client.requestText() ?? ""
            guard text.contains("<string>Connect</string>") else {
                client.send(MuxMessage.result(0) + MuxMessage.propertyList(MuxMessage.attached(1, Phones.one), tag: 0))
                return client.waitForEnd()
            }
            let isFirst = connects.withLock { count in
                count += 1
                return count == 1
            }
            client.send(MuxMessage.result(isFirst ? 2 : 0))
            client.waitForEnd()
        }
        try await withMonitor(at: fake.address) { monitor in
            try await eventually("the phone is listed") { await monitor.devices().count == 1 }

            #expect(try await Self.reason(monitor.planner, try Self.route()) == nil)
            #expect(connects.withLock { $0 } == 2)
        }
    }

    @Test(arguments: [(silences: 2, reason: nil), (silences: .max, reason: DialError.Reason.failed)])
    func `a Connect closed without a reply is retried and not reported as the end of usbmuxd`(
        silences: Int,
        reason: DialError.Reason?
    ) async throws {
        let connects = Mutex(0)
        let fake = try FakeUsbmuxd(in: scratch) { client in
            guard client.request() == "Connect" else {
                client.send(MuxMessage.result(0) + MuxMessage.propertyList(MuxMessage.attached(1, Phones.one), tag: 0))
                return client.waitForEnd()
            }
            let isSilent = connects.withLock { count in
                count += 1
                return count <= silences
            }
            if isSilent { return }
            client.send(MuxMessage.result(0))
            client.waitForEnd()
        }
        try await withMonitor(at: fake.address) { monitor in
            try await eventually("the phone is listed") { await monitor.devices().count == 1 }

            #expect(try await Self.reason(monitor.planner, try Self.route()) == reason)
            #expect((3...4).contains(connects.withLock { $0 }))
        }
    }

    @Test func `a DeviceID reused for another device after a restart never leads to that device`() async throws {
        let path = scratch.file("usbmuxd")
        let first = try FakeUsbmuxd(at: path) { $0.behave(phones: [(1, Phones.one)], welcome: "right") }
        // Restarts usbmuxd between the lookup of the DeviceID and its use, which is the worst moment.
        let native = NativeUsbmuxClient(address: .unix(path: path))
        let client = InterruptedUsbmuxClient(native) {
            first.stop()
            let second = try FakeUsbmuxd(at: path) { $0.behave(phones: [(1, Phones.two)], welcome: "wrong") }
            scratch.atEnd { second.stop() }
        }
        try await withMonitor(at: .unix(path: path), client: client) { monitor in
            try await eventually("the phone is listed") { await monitor.devices().count == 1 }

            let reason = try await Self.reason(monitor.planner, try Self.route())

            #expect(client.connected >= 1)
            #expect(reason == .usbmuxdAbsent || reason == .deviceAbsent)
        }
    }

    @Test func `after a restart with the device connected a dial reaches the right device`() async throws {
        let path = scratch.file("usbmuxd")
        let first = try FakeUsbmuxd(at: path) { $0.behave(phones: [(1, Phones.one)], welcome: "first") }
        let client = InterruptedUsbmuxClient(NativeUsbmuxClient(address: .unix(path: path))) {
            first.stop()
            let second = try FakeUsbmuxd(at: path) { client in
                client.behave(phones: [(1, Phones.two), (2, Phones.one)], welcome: "second")
            }
            scratch.atEnd { second.stop() }
        }
        try await withMonitor(at: .unix(path: path), client: client) { monitor in
            try await eventually("the phone is listed") { await monitor.devices().count == 1 }
            _ = try await Self.reason(monitor.planner, try Self.route())

            try await eventually("both phones are listed") { await monitor.devices().count == 2 }
            let connection = try await monitor.planner.dial(try Self.route())

            #expect(try await connection.receive(6) == Array("second".utf8))
            #expect(client.lastDeviceID == 2)
        }
    }
}
