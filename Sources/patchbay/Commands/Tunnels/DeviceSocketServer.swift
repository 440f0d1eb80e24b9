import Client
import Devices
import Glibc
import Model
import SystemIO
import Tunnels

/// A usbmuxd-compatible socket of this process that shows one phone of the broker.
///
/// The list of phones comes from the events of the broker. Each Connect opens a stream through the broker. While the
/// broker is away, the socket shows no phone, because all streams have ended.
struct DeviceSocketServer: Sendable {
    private let udid: UDID
    private let client: PatchbayClient
    private let server: UsbmuxServer
    private let devices: AsyncStream<[Device]>.Continuation

    /// Creates the socket.
    ///
    /// - Parameters:
    ///   - udid: The phone.
    ///   - path: The path of the new socket. A stale socket is replaced; any other file is not.
    ///   - client: The broker.
    ///   - environment: The environment, for the address of this machine's usbmuxd.
    ///   - failed: Called with each failed dial.
    /// - Throws: `CLIError` if the socket cannot be created.
    init(
        of udid: UDID,
        at path: String,
        client: PatchbayClient,
        usbmuxd environment: [String: String],
        failed: @escaping @Sendable (DialError) -> Void
    ) throws(CLIError) {
        self.udid = udid
        self.client = client
        let listener = try Self.listener(at: path)
        let usbmuxd = Self.usbmuxd(environment, except: path)
        let (stream, devices) = AsyncStream.makeStream(of: [Device].self)
        self.devices = devices
        server = UsbmuxServer(
            on: listener,
            devices: stream,
            dialer: StreamDialer(client: client, failed: failed),
            usbmuxd: PairRecordForwarder(of: udid, usbmuxd: usbmuxd.map { NativeUsbmuxClient(address: $0) }),
            relay: Relay()
        )
    }

    /// Checks whether the broker allows streams to the ports of the phone. A lease of another client may end later, and
    /// is no error.
    ///
    /// - Throws: `ClientError`.
    func checkAccess() async throws {
        // The port of lockdownd, which every phone has. The broker does not dial it here.
        do { try await client.streams.check(to: .device(udid: udid, port: 62_078)) } catch ClientError.refused(
            let problem
        ) where problem.code == .leased {}
    }

    /// Serves the socket until the task is cancelled or the grant ends, and removes it.
    ///
    /// - Parameters:
    ///   - log: Called when the connection to the broker is lost, and when it is back.
    ///   - opened: Called once, with the first list of phones: true if the phone is attached.
    /// - Throws: `ClientError`, `CancellationError`, or the error of `opened`.
    func run(log: @escaping (String) -> Void, opened: (_ isAttached: Bool) throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self, returning: Void.self) { group in
            group.addTask { try await server.run() }
            // The group would otherwise wait for the server after an error.
            defer { group.cancelAll() }
            var isOpen = false
            try await RetryingStream(log: log).run { answered in
                defer { devices.yield([]) }
                try await client.streamEvents { event in
                    answered()
                    guard case .devices(let attached) = event else { return }
                    let shown = attached.filter { $0.udid == udid }
                    devices.yield(shown)
                    if !isOpen { try opened(shown.contains { $0.transport == .usb }) }
                    isOpen = true
                }
            }
        }
    }

    private static func listener(at path: String) throws(CLIError) -> Listener {
        do { return try Listener(on: .unix(path: path)) } catch {
            // The error has the path and the next step.
            throw CLIError(status: .error, message: "the socket cannot be created: \(error)")
        }
    }

    /// Returns the socket of this machine's usbmuxd. Nil if usbmuxd has no unix socket, and if the variable names the
    /// socket at `path`, which would forward each request to itself.
    private static func usbmuxd(_ environment: [String: String], except path: String) -> ServerAddress? {
        guard let address = try? ServerAddress(usbmuxdIn: environment), let other = address.path else { return nil }
        var (own, found) = (stat(), stat())
        guard stat(path, &own) == 0, stat(other, &found) == 0 else { return address }
        return own.st_dev == found.st_dev && own.st_ino == found.st_ino ? nil : address
    }
}

/// Opens a stream through the broker for each connection to a phone.
private struct StreamDialer: Dialer {
    let client: PatchbayClient
    let failed: @Sendable (DialError) -> Void

    func dial(_ route: Route) async throws -> Connection {
        guard case .usb(let route) = route else { throw DialError(.noRoute, "only ports of a phone are dialed") }
        do {
            return try await client.streams.open(to: .device(route))
        } catch let error as ClientError {
            let failure = DialError(error)
            failed(failure)
            throw failure
        }
    }
}
