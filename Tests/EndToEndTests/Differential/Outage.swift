import TestSupport
import Testing

/// An outage of a phone and its end.
enum Outage: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case unplugged = "phone unplugged"
    case killed = "usbmuxd killed"
    case restarted = "usbmuxd restarted"

    var testDescription: String { rawValue }

    func begin(on rig: UsbmuxdFixture) async throws {
        switch self {
        case .unplugged: try await rig.detach(Phones.one)
        case .killed: try await rig.kill()
        case .restarted: try await rig.stop()
        }
    }

    func end(on rig: UsbmuxdFixture) async throws {
        switch self {
        case .unplugged: try await rig.attach(Phones.one)
        case .killed, .restarted: try await rig.start()
        }
    }
}
