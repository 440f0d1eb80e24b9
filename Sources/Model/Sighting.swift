/// One observation by one source. It is a Bonjour service on one interface and protocol, a port on a phone, a
/// configured endpoint, or an app that connected or registered.
///
/// A sighting has no interpretation. The registry decides which sightings belong to the same endpoint.
package struct Sighting: Hashable, Sendable {
    /// The identity of the sighting within its source. A later sighting with the same ID replaces this one.
    package struct ID: Hashable, Sendable, CustomStringConvertible {
        package let source: Source
        /// A key that is unique within the source. Only the source interprets it.
        package let key: String

        package init(source: Source, key: String) {
            self.source = source
            self.key = key
        }

        package var description: String { "\(source.rawValue):\(key)" }
    }

    package enum Source: String, Hashable, Sendable, Codable {
        case bonjour
        /// A port of an iPhone.
        case usbmuxd
        /// A port of an Android phone.
        case adb
        case config
        /// An app that connected to the state debugger.
        case debuglink
        /// An app that registered itself with a grant.
        case registration

        /// True if any machine on the network can cause sightings of this source.
        package var isNetwork: Bool { self == .bonjour || self == .debuglink }

        /// The source of apps on phones with this system.
        package init(of platform: Platform) {
            self =
                switch platform {
                case .ios: .usbmuxd
                case .android: .adb
                }
        }

        /// True if a port of an attached phone answered, so that the phone itself is known.
        package var isPhone: Bool { self == .usbmuxd || self == .adb }

        /// True if the owner or the holder of a grant chose the addresses of this source. `ApprovalPolicy` approves such
        /// a network route, because it has no machine. The default of a new source is false: an owner approves each address.
        fileprivate var choosesAddresses: Bool {
            switch self {
            case .config, .registration: true
            case .bonjour, .usbmuxd, .adb, .debuglink: false
            }
        }
    }

    /// The state of the endpoint as the source itself knows it.
    package enum Availability: Hashable, Sendable {
        case available
        /// The endpoint is there and does not work; with the reason.
        case suspect(String)
        /// The app is gone, and Patchbay answers for it; with the reason.
        case offline(String)
    }

    package let id: ID
    package let kind: EndpointKind
    /// The bundle identifier of the app if the source knows it, else its advertised name.
    package let app: SanitizedText
    /// True if `app` is a bundle identifier. Two sightings of one app share a bundle identifier; a name is not an
    /// identity.
    package let appIsBundleID: Bool
    /// The display name: the Bonjour instance name, the configured name, or the app's own name.
    package let name: SanitizedText
    /// The machine as the source knows it: an SRV target (`iphone.local`). Nil if `device` identifies the machine.
    package let machine: SanitizedText?
    /// The phone on which the app runs. Known for USB only.
    package let device: UDID?
    /// A role that distinguishes two servers of one app on one machine (TXT key `role` or `id`). Usually empty.
    package let role: SanitizedText
    package let version: SanitizedText?
    package let txt: TXTRecord
    /// The routes that this sighting knows, best first. A network route without a machine is dropped, unless the source's
    /// addresses are chosen, because a route without a machine needs no approval.
    package let routes: [Route]
    /// The port of the server, or 0 if the source does not know one. Known before any address is resolved.
    package let port: UInt16
    /// The reason why none of the addresses may be dialled. Nil if one may.
    package let blocked: String?
    /// An ID that changes with each launch of the app. Nil if the source does not know one; then only the port changes.
    package let launchID: SanitizedText?
    /// The authentication code of a Dart VM service, if the source knows one. Only the broker reads the code.
    package let authCode: DartAuthCode?
    package let availability: Availability
    /// True if a request that identifies the server had no response. The app is unknown then.
    package let isPartial: Bool

    package init(
        id: ID,
        kind: EndpointKind,
        app: SanitizedText,
        appIsBundleID: Bool,
        name: SanitizedText,
        machine: SanitizedText? = nil,
        device: UDID? = nil,
        role: SanitizedText = SanitizedText(""),
        version: SanitizedText? = nil,
        txt: TXTRecord = TXTRecord(),
        routes: [Route],
        port: UInt16? = nil,
        launchID: SanitizedText? = nil,
        blocked: String? = nil,
        authCode: DartAuthCode? = nil,
        availability: Availability = .available,
        isPartial: Bool = false
    ) {
        self.id = id
        self.kind = kind
        self.app = app
        self.appIsBundleID = appIsBundleID
        self.name = name
        self.machine = machine
        self.device = device
        self.role = role
        self.version = version
        self.txt = txt
        self.routes =
            id.source.choosesAddresses ? routes : routes.filter { !$0.isNetwork || $0.isInbound || $0.machine != nil }
        self.port = port ?? self.routes.first?.port ?? 0
        self.launchID = launchID
        self.blocked = blocked
        self.authCode = authCode
        self.availability = availability
        self.isPartial = isPartial
    }
}

extension Sighting {
    /// True if every route is a loopback address. Discovery accepts such an address only in adverts of this host.
    package var isOnThisHost: Bool { !routes.isEmpty && routes.allSatisfy(\.isLoopback) }

    /// The socket of the server on a phone: that of the first route, else the port.
    package var deviceSocket: DeviceSocket {
        if case .usb(let route)? = routes.first { route.socket } else { .port(port) }
    }

    /// Returns the role of a server that did not report a name.
    ///
    /// The port distinguishes two such servers on one phone and stays the same after a relaunch.
    package static func namelessRole(port: UInt16) -> SanitizedText { SanitizedText("port-\(port)") }
}

/// A report of a source. Reports are ordered.
package enum SightingEvent: Hashable, Sendable {
    /// A new or changed sighting, complete.
    case seen(Sighting)
    /// The sighting is gone: a goodbye packet, an unplugged phone, or a port that refuses connections.
    case lost(Sighting.ID)
    /// The source is unavailable, for example because avahi-daemon exited. Its sightings are neither confirmed nor
    /// gone.
    case sourceLost(Sighting.Source)
    /// The source is back and has reported all sightings again. Sightings that were not reported are gone.
    case sourceReconciled(Sighting.Source)
}

/// The identity that a server reports when probed.
package struct ServerIdentity: Hashable, Sendable {
    package var kind: EndpointKind
    /// The bundle identifier of the app, if the server reports it without a token.
    package var app: SanitizedText?
    package var name: SanitizedText?
    package var version: SanitizedText?
    /// The device on which the app runs, as the app itself names it.
    package var device: SanitizedText?
    /// An ID that is new at each launch of the app, if the server reports one.
    package var launchID: SanitizedText?
    /// True if the server requires its session token with every request.
    package var wantsToken: Bool
    /// The port on which the server itself says that it listens; nil if it names none.
    package var port: UInt16?
    /// True if the app is unknown because a request had no response. The same server may identify itself later.
    package var isPartial = false

    /// True if another probe cannot add information.
    package var isComplete: Bool {
        switch kind {
        case .appreveal: app != nil
        case .tcp: false
        default: true
        }
    }

    package init(
        kind: EndpointKind,
        app: SanitizedText? = nil,
        name: SanitizedText? = nil,
        version: SanitizedText? = nil,
        device: SanitizedText? = nil,
        launchID: SanitizedText? = nil,
        wantsToken: Bool = false,
        port: UInt16? = nil
    ) {
        self.kind = kind
        self.app = app
        self.name = name
        self.version = version
        self.device = device
        self.launchID = launchID
        self.wantsToken = wantsToken
        self.port = port
    }
}
