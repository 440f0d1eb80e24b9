import Devices
import Glibc
import Logging
import Model
import TestSupport
import SystemIO
import Tunnels

@testable import UsbmuxServer

/// A facade whose usbmuxd is away and whose dialer is the test's, and what a client of it does.
enum FacadeBench {
    /// Gives the body the facade and its address while it runs.
    static func running(
        dialer: any Dialer,
        clientLimit: Int = 10,
        phones: [Device] = [],
        _ body: (UsbmuxServer, SocketAddress) async throws -> Void
    ) async throws {
        try await withScratchFolder { scratch in
            let address = SocketAddress.unix(path: scratch.file("mux"))
            let (stream, teller) = AsyncStream.makeStream(of: [Device].self)
            teller.yield(phones)
            let relay = Relay()
            let facade = UsbmuxServer(
                on: try Listener(on: address),
                phones: stream,
                dialer: dialer,
                usbmuxd: NativeUsbmuxClient(address: .unix(path: scratch.file("usbmuxd"))),
                relay: relay,
                clientLimit: clientLimit,
                logger: Logger(label: "test")
            )
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await facade.run() }
                try await body(facade, address)
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

    /// What comes next; nothing at the end.
    static func receive(over socket: CInt) async throws -> [UInt8] {
        try await Poller.shared.wait(for: .readable, of: socket)
        var buffer = [UInt8](repeating: 0, count: 65_536)
        return Array(buffer[..<max(0, recv(socket, &buffer, buffer.count, 0))])
    }
}
