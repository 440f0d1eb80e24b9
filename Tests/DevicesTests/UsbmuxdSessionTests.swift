import TestSupport
import SystemIO
import Testing

@testable import Devices

@Suite struct UsbmuxdSessionTests {
    @Test func `a stream is vouched for while that usbmuxd lives, read to its end or not`() async throws {
        try await withScratchFolder { scratch in
            let fake = try FakeUsbmuxd(in: scratch) { client in
                client.send(Samples.frame(Samples.detached(1), tag: 0))
                client.waitForEnd()
            }
            let epoch = UsbmuxdSession(listeningOn: try await fake.address.connect(clock: ContinuousClock()))
            let stream = try await fake.address.connect(clock: ContinuousClock())
            #expect(epoch.vouches(for: stream.number))

            fake.stop()
            try await eventually("usbmuxd has hung up") { !epoch.isAlive }

            #expect(!epoch.vouches(for: stream.number))
        }
    }

    @Test func `a stream of another process is not vouched for`() async throws {
        try await withScratchFolder { scratch in
            let fake = try FakeUsbmuxd(in: scratch) { $0.waitForEnd() }
            let elsewhere = try EchoServer(in: scratch)
            let epoch = UsbmuxdSession(listeningOn: try await fake.address.connect(clock: ContinuousClock()))
            // The kernel names no process behind TCP, so this is any process but the one that listens.
            let address = UsbmuxAddress.tcp(host: "127.0.0.1", port: elsewhere.port)
            let stream = try await address.connect(clock: ContinuousClock())

            #expect(epoch.isAlive)
            #expect(!epoch.vouches(for: stream.number))
        }
    }

    @Test func `nothing is vouched for after we stopped listening`() async throws {
        try await withScratchFolder { scratch in
            let fake = try FakeUsbmuxd(in: scratch) { $0.waitForEnd() }
            let epoch = UsbmuxdSession(listeningOn: try await fake.address.connect(clock: ContinuousClock()))
            let stream = try await fake.address.connect(clock: ContinuousClock())

            epoch.end()

            #expect(!epoch.vouches(for: stream.number))
        }
    }
}
