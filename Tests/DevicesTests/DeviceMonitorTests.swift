import Glibc
import Model
import Samples
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Devices

@Suite(.scratchFolder) struct DeviceMonitorTests {
    private let scratch = ScratchFolder.current

    @Test func `an absent usbmuxd is reported, and connected when it starts`() async throws {
        let path = scratch.file("usbmuxd")
        try await withMonitor(at: .unix(path: path)) { monitor in
            try await eventually("the absence is noticed") { await monitor.status().state == .missing }
            let status = await monitor.status()
            #expect(status.hint?.contains("sudo apt install usbmuxd") == true)
            #expect(await monitor.devices() == [])

            let fake = try FakeUsbmuxd(at: path) { $0.behave(phones: [(1, Phones.one)]) }
            scratch.atEnd { fake.stop() }

            try await eventually(within: .milliseconds(1500), "the phone is listed") {
                await monitor.devices().map(\.udid.text) == [Phones.one]
            }
            try await eventually("the status is good") { await monitor.status().state == .ok }
        }
    }

    @Test func `a hung usbmuxd is reported within 3 s, and its devices stay listed for a while`() async throws {
        let isHung = Mutex(false)
        let fake = try FakeUsbmuxd(in: scratch) { client in
            if isHung.withLock({ $0 }) { return client.waitForEnd() }
            client.behave(phones: [(1, Phones.one)])
        }
        try await withMonitor(at: fake.address) { monitor in
            try await eventually("the status is good") { await monitor.status().state == .ok }
            isHung.withLock { $0 = true }

            try await eventually(within: .milliseconds(3_500), "the silence is reported") {
                await monitor.status().detail.contains("not answered for")
            }
            #expect(await monitor.status().state == .starting)
            #expect(await monitor.devices().count == 1)
            isHung.withLock { $0 = false }
            try await eventually("the status is good") { await monitor.status().state == .ok }
        }
    }

    @Test func `events are reported in order`() async throws {
        let path = scratch.file("usbmuxd")
        let first = try FakeUsbmuxd(at: path) { client in
            guard client.request() == "Listen" else { return client.send(MuxMessage.propertyList(MuxMessage.list([]))) }
            client.send(MuxMessage.result(0))
            client.send(MuxMessage.propertyList(MuxMessage.attached(1, Phones.one), tag: 0))
            client.send(MuxMessage.propertyList(MuxMessage.attached(2, Phones.one, transport: "Telepathy"), tag: 0))
            client.send(MuxMessage.propertyList("<dict><key>MessageType</key><string>Paired</string></dict>", tag: 0))
            client.send(MuxMessage.propertyList(MuxMessage.detached(1), tag: 0))
            client.waitForEnd()
        }
        try await withMonitor(at: .unix(path: path)) { monitor in
            var events = monitor.events.makeAsyncIterator()
            var told: [String] = []
            func next() async { if let event = await events.next() { told.append(Self.name(of: event)) } }
            for _ in 0..<3 { await next() }
            #expect(Set(told) == ["attached", "detached", "ready"])
            #expect(told.filter { $0 != "ready" } == ["attached", "detached"])

            first.stop()
            told = []
            await next()
            let second = try FakeUsbmuxd(at: path) { $0.behave(phones: [(1, Phones.two)]) }
            scratch.atEnd { second.stop() }
            await next()
            await next()
            #expect(told == ["lost", "attached", "ready"])
        }
    }

    @Test func `a usbmuxd that accepts and hangs up is retried only a few times per second`() async throws {
        let fake = try FakeUsbmuxd(in: scratch) { _ in }
        try await withMonitor(at: fake.address) { monitor in
            try await eventually("it was tried") { fake.accepted > 0 }
            try await Task.sleep(for: .seconds(2))

            #expect(fake.accepted < 16)
            #expect(await monitor.status().detail.contains("closes connections"))
        }
    }

    @Test(arguments: NativeUsbmuxClientTests.Garbage.allCases)
    func `invalid data during Listen ends the session, and the next one is used`(
        garbage: NativeUsbmuxClientTests.Garbage
    ) async throws {
        let isMad = Mutex(true)
        let fake = try FakeUsbmuxd(in: scratch) { client in
            guard isMad.withLock({ $0 }) else { return client.behave(phones: [(1, Phones.one)]) }
            _ = client.request()
            client.send(MuxMessage.result(0) + garbage.bytes)
        }
        try await withMonitor(at: fake.address) { monitor in
            try await eventually("it was tried") { fake.accepted > 2 }
            isMad.withLock { $0 = false }

            try await eventually("the phone is listed") { await monitor.devices().count == 1 }
        }
    }

    @Test func `a failed list removes no device`() async throws {
        let fake = try FakeUsbmuxd(in: scratch) { client in
            guard client.request() == "Listen" else { return client.send(MuxMessage.result(1)) }
            client.send(MuxMessage.result(0) + MuxMessage.propertyList(MuxMessage.attached(1, Phones.one), tag: 0))
            client.waitForEnd()
        }
        try await withMonitor(at: fake.address) { monitor in
            try await eventually("the status is good") { await monitor.status().state == .ok }
            try await eventually("the phone is listed") { await monitor.devices().count == 1 }
        }
    }

    @Test func `an address that is not a socket is reported with a reason`() async throws {
        let path = try scratch.write("", to: "usbmuxd")
        try await withMonitor(at: .unix(path: path)) { monitor in
            try await eventually("the status has a hint") { await monitor.status().hint != nil }
            #expect(await monitor.status().state == .missing)
        }
    }

    private static func name(of event: DeviceEvent) -> String {
        switch event {
        case .attached: "attached"
        case .detached: "detached"
        case .paired: "paired"
        case .usbmuxdLost: "lost"
        case .usbmuxdReady: "ready"
        }
    }
}

/// Runs a monitor while the body runs.
func withMonitor(
    at address: ServerAddress,
    client: (any UsbmuxClient)? = nil,
    _ body: (DeviceMonitor) async throws -> Void
) async throws {
    let client = client ?? NativeUsbmuxClient(address: address)
    let monitor = DeviceMonitor(address: address, client: client, logger: .quiet)
    try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await monitor.run() }
        defer { group.cancelAll() }
        try await body(monitor)
    }
}
