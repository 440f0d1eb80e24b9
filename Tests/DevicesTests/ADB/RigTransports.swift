import Model
import Synchronization
import SystemIO
import TestSupport

@testable import Devices

/// Knows the phones of a fixture, without a monitor: it asks the server for the list at each connection.
final class RigTransports: ADBTransportSource {
    /// The identities of the phones by `ro.serialno`.
    static let udids = [
        "R58M12ABCDE": UDID(Phones.one).unsafelyUnwrapped, "RZ8N90XYZ12": UDID(Phones.two).unsafelyUnwrapped,
    ]

    /// The number of further streams whose transport counts as changed.
    let failedChecks = Mutex(0)
    private let rig: ADBFixture
    private let client: ADBClient

    init(_ rig: ADBFixture) {
        self.rig = rig
        client = ADBClient(address: .unix(path: rig.socketPath))
    }

    func transport(of udid: UDID) async throws(DialError) -> ADBTransport {
        let listed = await rig.listedSerial(of: Self.udids.first { $0.value == udid }?.key ?? "")
        guard let record = await records().first(where: { $0.serial.text == listed }), record.state == .ready else {
            throw DialError(.deviceAbsent, "\(udid) is not attached")
        }
        return ADBTransport(
            record.transportID,
            at: .unix(path: rig.socketPath),
            of: self,
            name: SanitizedText("Pixel 8"),
            isCurrent: { [self] in
                failedChecks.withLock { left in
                    left -= 1
                    return left < 0
                }
            },
            linkCheck: { [self] completion in
                Task {
                    let records = await records()
                    completion(records.contains { $0.transportID == record.transportID && $0.state == .ready })
                }
            }
        )
    }

    private func records() async -> [ADBDeviceRecord] { (try? await client.devices()) ?? [] }
}
