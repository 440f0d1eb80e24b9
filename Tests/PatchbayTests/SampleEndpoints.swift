import FoundationEssentials
import Model

@testable import patchbay

/// Sample values for tests.
enum SampleEndpoints {
    static let date = Date(timeIntervalSince1970: 1_795_000_000)
    static let phone = udid("00008101-000123456789ABCD")
    static let otherPhone = udid("00008110-00AAAAAAAAAAAAAA")

    static func udid(_ text: String) -> UDID {
        guard let udid = UDID(text) else { preconditionFailure("\(text) is no UDID") }
        return udid
    }

    static func device(_ udid: UDID, _ transport: Device.Transport = .usb, name: String? = nil) -> Device {
        var device = Device(udid: udid, transport: transport, attachedAt: date)
        device.name = name.map { SanitizedText($0) }
        return device
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
        Endpoint(
            id: EndpointID(app: SanitizedText(app), location: place),
            kind: .appreveal,
            app: SanitizedText(app),
            name: SanitizedText(name),
            location: Endpoint.Location(udid: phone),
            state: state,
            approval: .approved,
            routes: phone.map { [EndpointRoute(.usb(USBRoute(udid: $0, port: 9876)))] } ?? [],
            txt: TXTRecord(items: txt.map { Array($0.utf8) }),
            sources: [.usbmuxd],
            firstSeenAt: date,
            lastSeenAt: date
        )
    }
}
