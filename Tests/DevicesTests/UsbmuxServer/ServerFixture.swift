@testable import Devices
import FoundationEssentials
import Model
import Samples
import SystemIO
import TestSupport
import Testing
import Tunnels

/// Runs a server without usbmuxd and with the test's dialer, and acts as its client.
enum ServerFixture {
    /// Runs the server and passes it and its address to the body.
    static func running(
        dialer: any Dialer,
        policy: (any ConnectionPolicy)? = nil,
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
                policy: policy,
                clientLimit: clientLimit,
                logger: .quiet
            )
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await server.run() }
                try await body(server, address)
                group.cancelAll()
            }
            await relay.stop()
        }
    }

    /// Receives the next bytes; an empty array at the end of the stream or after its failure.
    static func receive(from client: SocketStream) async throws -> [UInt8] {
        do { return try await client.receiveSome() } catch is SocketStream.Failure { return [] }
    }

    static func device(_ udid: String, _ transport: Device.Transport = .usb, since seconds: Double = 0) throws -> Device
    {
        let isCable = transport == .usb
        return Device(
            udid: try #require(UDID(udid)),
            transport: transport,
            productID: isCable ? 0x12A8 : nil,
            locationID: isCable ? 65_537 : nil,
            attachedAt: Date(timeIntervalSince1970: seconds)
        )
    }
}
