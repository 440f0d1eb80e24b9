import Devices
import Glibc
import Logging
import Model
import TestSupport
import SystemIO
import Tunnels

@testable import UsbmuxServer

/// Runs a server without usbmuxd and with the test's dialer, and acts as its client.
enum ServerFixture {
    /// Runs the server and passes it and its address to the body.
    static func running(
        dialer: any Dialer,
        clientLimit: Int = 10,
        devices: [Device] = [],
        _ body: (UsbmuxServer, SocketAddress) async throws -> Void
    ) async throws {
        try await withScratchFolder { scratch in
            let address = SocketAddress.unix(path: scratch.file("mux"))
            let (stream, continuation) = AsyncStream.makeStream(of: [Device].self)
            continuation.yield(devices)
            let relay = Relay()
            let server = UsbmuxServer(
                on: try Listener(on: address),
                devices: stream,
                dialer: dialer,
                usbmuxd: NativeUsbmuxClient(address: .unix(path: scratch.file("usbmuxd"))),
                relay: relay,
                clientLimit: clientLimit,
                logger: Logger(label: "test")
            )
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await server.run() }
                try await body(server, address)
                group.cancelAll()
            }
            await relay.stop()
        }
    }

    static func connect(to address: SocketAddress) async throws -> Descriptor {
        try await address.connect(within: .seconds(5), clock: ContinuousClock())
    }

    static func send(_ bytes: [UInt8], over socket: CInt) -> Bool {
        Glibc.send(socket, bytes, bytes.count, CInt(MSG_NOSIGNAL)) == bytes.count
    }

    /// Receives the next bytes; an empty array at the end of the stream.
    static func receive(over socket: CInt) async throws -> [UInt8] {
        try await Poller.shared.wait(for: .readable, of: socket)
        var buffer = [UInt8](repeating: 0, count: 65_536)
        return Array(buffer[..<max(0, recv(socket, &buffer, buffer.count, 0))])
    }
}
