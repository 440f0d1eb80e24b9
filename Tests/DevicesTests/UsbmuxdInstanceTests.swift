import SystemIO
import TestSupport
import Testing

@testable import Devices

@Suite(.scratchFolder) struct UsbmuxdSessionTests {
    private let scratch = ScratchFolder.current

    @Test func `a session owns a stream while its usbmuxd lives, with or without unread data`() async throws {
        let fake = try FakeUsbmuxd(in: scratch) { client in
            client.send(MuxMessage.propertyList(MuxMessage.detached(1), tag: 0))
            client.waitForEnd()
        }
        let socket = try await fake.address.connectToUsbmuxd()
        let session = UsbmuxdInstance(listeningOn: socket, path: fake.path)
        let stream = try await fake.address.connectToUsbmuxd()
        #expect(session.owns(connection: stream.number))

        fake.stop()
        try await eventually("usbmuxd has hung up") { !session.isAlive }

        #expect(!session.owns(connection: stream.number))
    }

    @Test func `a session does not own a stream of another process`() async throws {
        let fake = try FakeUsbmuxd(in: scratch) { $0.waitForEnd() }
        let elsewhere = try EchoServer(in: scratch)
        let socket = try await fake.address.connectToUsbmuxd()
        let session = UsbmuxdInstance(listeningOn: socket, path: fake.path)
        // The kernel reports no process behind TCP, so this stream counts as one of another process.
        let address = ServerAddress.tcp(host: "127.0.0.1", port: elsewhere.port)
        let stream = try await address.connectToUsbmuxd()

        #expect(session.isAlive)
        #expect(!session.owns(connection: stream.number))
    }

    @Test func `a closed session owns no stream`() async throws {
        let fake = try FakeUsbmuxd(in: scratch) { $0.waitForEnd() }
        let socket = try await fake.address.connectToUsbmuxd()
        let session = UsbmuxdInstance(listeningOn: socket, path: fake.path)
        let stream = try await fake.address.connectToUsbmuxd()

        session.close()

        #expect(!session.owns(connection: stream.number))
    }
}
