package import FoundationEssentials

/// A phone that usbmuxd or adb reports.
///
/// A device is identified by its UDID and transport. The numbers of usbmuxd and adb are not used: they start again at 1
/// when the server restarts, and can then denote another phone.
package struct Device: Hashable, Sendable {
    /// The transport between the server and the phone. An emulator of this machine is on the network.
    package enum Transport: String, Hashable, Sendable, Codable {
        case usb
        case network
    }

    /// The state of a phone: its apps can be reached only if it is ready.
    package enum State: String, Hashable, Sendable, Codable, CaseIterable {
        case ready
        /// The iPhone was not unlocked since its start, so it runs no apps. Its other ports are reached.
        case locked
        /// The phone has not allowed this machine.
        case unauthorized
        /// The phone is being asked, or the connection is being made.
        case connecting
        case offline
        /// adb may not open the phone's USB device.
        case noPermissions = "no-permissions"
        /// The phone runs no apps now, such as in recovery.
        case unavailable
    }

    package let udid: UDID
    package let transport: Transport
    package var state = State.ready
    /// The USB product ID from the phone's descriptor. Nil for network devices.
    package let productID: Int?
    /// The USB bus and port as usbmuxd numbers them. Nil for network devices.
    package let locationID: Int?
    /// The time when Patchbay first saw the current attachment.
    package let attachedAt: Date
    /// The name that the phone reports, such as "Anna’s iPhone". Nil until the phone reports one.
    package var name: SanitizedText?
    /// The model that the phone reports, such as "iPhone15,3" or "Pixel 8".
    package var productType: SanitizedText?
    /// The version of the system that the phone reports, such as "17.5" of iOS or "15" of Android.
    package var productVersion: SanitizedText?
    /// True if usbmuxd has the record of a pairing with the iPhone; nil if it does not tell, and for other phones.
    ///
    /// Streams to ports need none: usbmuxd shows an unpaired phone too, and lockdownd answers on such a stream.
    package var isPaired: Bool?
    /// An owner's label and note of the phone; nil without one.
    package var label: SanitizedText?
    package var note: SanitizedText?
    /// Every way to the phone in the team, the best one first. Nil without a team.
    package var routes: [DeviceRoute]?

    package init(udid: UDID, transport: Transport, productID: Int? = nil, locationID: Int? = nil, attachedAt: Date) {
        self.udid = udid
        self.transport = transport
        self.productID = productID
        self.locationID = locationID
        self.attachedAt = attachedAt
    }

    package var platform: Platform { udid.platform }
    /// True if ports of the phone can be reached.
    package var isReady: Bool { state == .ready || state == .locked }
}

extension Device.State {
    /// The reason why apps on the phone cannot be reached, in words that follow its name; nil if they can.
    package var obstacle: String? {
        switch self {
        case .ready: nil
        case .locked: "was not unlocked since its start"
        case .unauthorized: "has not allowed USB debugging from this machine"
        case .connecting: "is being connected"
        case .offline: "does not answer"
        case .noPermissions: "may not be opened by the adb server"
        case .unavailable: "runs no apps now"
        }
    }

    /// The action of a person after which apps on the phone can be reached; nil if none is needed.
    package var hint: String? {
        switch self {
        case .ready: nil
        case .locked: "unlock the phone, because it runs no apps before"
        case .unauthorized:
            "unlock the phone and tap Allow in the dialog \"Allow USB debugging?\"; without a dialog, turn USB debugging off "
                + "and on in its developer options"
        case .connecting: "wait a moment; if it stays so, unlock the phone and plug it in again"
        case .offline: "unlock the phone and plug it in again; over Wi-Fi, connect adb to its address again"
        case .noPermissions:
            "`sudo apt install android-sdk-platform-tools-common`, which has the udev rules, and plug the phone in again"
        case .unavailable: "start the phone's system: `adb reboot`"
        }
    }
}

extension Device: Codable {
    private enum Keys: String, CodingKey {
        case udid, platform, transport, state, hint, productID, locationID, attachedAt, name, productType,
            productVersion
        case paired, label, note, routes
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        udid = try container.decode(UDID.self, forKey: .udid)
        transport = try container.decode(Transport.self, forKey: .transport)
        state = try container.decodeIfPresent(State.self, forKey: .state) ?? .ready
        productID = try container.decodeIfPresent(Int.self, forKey: .productID)
        locationID = try container.decodeIfPresent(Int.self, forKey: .locationID)
        attachedAt = try container.decode(Date.self, forKey: .attachedAt)
        name = try container.decodeIfPresent(SanitizedText.self, forKey: .name)
        productType = try container.decodeIfPresent(SanitizedText.self, forKey: .productType)
        productVersion = try container.decodeIfPresent(SanitizedText.self, forKey: .productVersion)
        isPaired = try container.decodeIfPresent(Bool.self, forKey: .paired)
        label = try container.decodeIfPresent(SanitizedText.self, forKey: .label)
        note = try container.decodeIfPresent(SanitizedText.self, forKey: .note)
        routes = try container.decodeIfPresent([DeviceRoute].self, forKey: .routes)
    }

    /// Encodes the platform, which the UDID implies, and of a phone with another state than ready the state and what to do.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(udid, forKey: .udid)
        try container.encode(platform, forKey: .platform)
        try container.encode(transport, forKey: .transport)
        if state != .ready { try container.encode(state, forKey: .state) }
        try container.encodeIfPresent(state.hint, forKey: .hint)
        try container.encodeIfPresent(productID, forKey: .productID)
        try container.encodeIfPresent(locationID, forKey: .locationID)
        try container.encode(attachedAt, forKey: .attachedAt)
        try container.encodeIfPresent(name, forKey: .name)
        try container.encodeIfPresent(productType, forKey: .productType)
        try container.encodeIfPresent(productVersion, forKey: .productVersion)
        try container.encodeIfPresent(isPaired, forKey: .paired)
        try container.encodeIfPresent(label, forKey: .label)
        try container.encodeIfPresent(note, forKey: .note)
        try container.encodeIfPresent(routes, forKey: .routes)
    }
}

/// A host of the team to which a phone is attached.
package struct DeviceRoute: Hashable, Sendable, Codable {
    package let host: HostStatus
    package let transport: Device.Transport

    package init(host: HostStatus, transport: Device.Transport) {
        self.host = host
        self.transport = transport
    }
}

extension Device: Identifiable {
    /// The identity of one attachment. A replugged phone has another `attachedAt`.
    package struct ID: Hashable, Sendable {
        package let udid: UDID
        package let transport: Transport
        package let attachedAt: Date
    }

    package var id: ID { ID(udid: udid, transport: transport, attachedAt: attachedAt) }
}
