import Devices
import Logging
import Model
import TestSupport

/// The two usbmuxd clients, which meet the same promises.
enum DeviceClientKind: String, CaseIterable, Sendable {
    case native
    case libusbmuxd

    func client(of rig: UsbmuxdFixture, connectTimeout: Duration = .seconds(10)) -> any UsbmuxClient {
        let address = ServerAddress.unix(path: rig.socketPath)
        return switch self {
        case .native: NativeUsbmuxClient(address: address, connectTimeout: connectTimeout)
        case .libusbmuxd: LibusbmuxdClient(address: address)
        }
    }
}

/// Runs a device source over this client for the duration of the body.
nonisolated(nonsending) func withDeviceSource(
    of rig: UsbmuxdFixture,
    _ client: any UsbmuxClient,
    _ body: (DeviceMonitor) async throws -> Void
) async throws {
    let source = DeviceMonitor(
        address: .unix(path: rig.socketPath),
        client: client,
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    )
    try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await source.run() }
        defer { group.cancelAll() }
        try await body(source)
    }
}

extension DeviceMonitor {
    /// Returns when exactly these phones are listed, in any order.
    nonisolated func lists(_ udids: [String], within limit: Duration = .seconds(5)) async throws {
        try await eventually(within: limit, "these phones are listed: \(udids)") {
            await devices().map(\.udid).sorted() == udids.compactMap { UDID($0) }.sorted()
        }
    }
}
