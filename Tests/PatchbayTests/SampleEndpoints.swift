import FoundationEssentials
import Model
import Samples

@testable import patchbay

/// Sample values for tests.
enum SampleEndpoints {
    static let date = Date(timeIntervalSince1970: 1_795_000_000)
    static let phone = UDID("00008101-000123456789ABCD")
    static let otherPhone = UDID("00008110-00AAAAAAAAAAAAAA")

    static func device(_ udid: UDID, _ transport: Device.Transport = .usb, name: String? = nil) -> Device {
        .sample(udid, transport, name: name, attachedAt: date)
    }

    /// Returns an invite that was created at `date` and is open for a time in seconds.
    static func invite(
        _ permissions: Permissions = Permissions([.registryRead], on: .all),
        used: Int = 0,
        openFor seconds: Double = 0,
        endReason: Invite.EndReason? = nil
    ) -> Invite {
        Invite(
            id: "0a1b2c3d",
            permissions: permissions,
            maxUses: 1,
            useCount: used,
            failedAttempts: 0,
            createdBy: .broker,
            createdAt: date,
            expiresAt: date.addingTimeInterval(seconds),
            endReason: endReason
        )
    }

    static func endpoint(
        _ app: String,
        on place: String,
        name: String = "Shop",
        phone: UDID? = nil,
        state: Endpoint.State = .online,
        txt: [String] = []
    ) -> Endpoint {
        .sample(
            EndpointID(app: SanitizedText(app), location: place),
            app: app,
            name: name,
            location: Endpoint.Location(udid: phone),
            state: state,
            routes: phone.map { [.usb($0, port: 9876)] } ?? [],
            txt: TXTRecord(items: txt.map { Array($0.utf8) }),
            sources: [.usbmuxd],
            firstSeenAt: date,
            lastSeenAt: date
        )
    }
}
