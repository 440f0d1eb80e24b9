/// One thing one source saw: a Bonjour service on one interface and protocol, a port that answers on a phone, a line of
/// the configuration.
///
/// Sources say what they see and nothing about what it means: which sightings are one endpoint is the registry's decision.
package struct Sighting: Hashable, Sendable {
    /// Names the sighting for as long as its source sees it; a later sighting with the same id replaces this one.
    package struct ID: Hashable, Sendable, CustomStringConvertible {
        package let source: Source
        /// Unique within the source; its form is the source's own business.
        package let key: String

        package init(source: Source, key: String) {
            self.source = source
            self.key = key
        }

        package var description: String { "\(source.rawValue):\(key)" }
    }

    package enum Source: String, Hashable, Sendable, Codable {
        case bonjour
        case usb
        case config
    }

    package let id: ID
    package let kind: EndpointKind
    /// The app: its bundle identifier where the source knows it, else the name under which it advertised itself.
    package let app: SanitizedText
    /// True when `app` is a bundle identifier, which two sightings of one app share; a name is only a name.
    package let appIsBundleID: Bool
    /// What people call it: the Bonjour instance name, the configured name, or the app's own.
    package let name: SanitizedText
    /// Where it runs as its source knows it: an SRV target (`iphone.local`), or nil where a device says it better.
    package let host: SanitizedText?
    /// The phone that it runs on; known over the cable only.
    package let device: UDID?
    /// What tells two servers of one app on one host apart (a TXT `role` or `id` key); empty almost always.
    package let role: SanitizedText
    package let version: SanitizedText?
    package let txt: TXTRecord
    /// Every way to reach it that this sighting knows, the best first.
    package let routes: [Route]
    /// The port that it listens on; 0 when the source knows none. Unlike `routes` it is known before any address is.
    package let port: UInt16
    /// Why none of its addresses may be dialled; nil when one may.
    package let blocked: String?
    /// Changes with each launch of the app, where the source can tell; the port is what changes otherwise.
    package let boot: SanitizedText?

    package init(
        id: ID,
        kind: EndpointKind,
        app: SanitizedText,
        appIsBundleID: Bool,
        name: SanitizedText,
        host: SanitizedText? = nil,
        device: UDID? = nil,
        role: SanitizedText = SanitizedText(""),
        version: SanitizedText? = nil,
        txt: TXTRecord = TXTRecord(),
        routes: [Route],
        port: UInt16? = nil,
        boot: SanitizedText? = nil,
        blocked: String? = nil
    ) {
        self.id = id
        self.kind = kind
        self.app = app
        self.appIsBundleID = appIsBundleID
        self.name = name
        self.host = host
        self.device = device
        self.role = role
        self.version = version
        self.txt = txt
        self.routes = routes
        self.port = port ?? routes.first?.port ?? 0
        self.boot = boot
        self.blocked = blocked
    }
}

extension Sighting {
    /// The role of a server that has not said its name: its port is what tells two of them on one phone apart, and stays
    /// the same after a relaunch.
    package static func namelessRole(port: UInt16) -> SanitizedText { SanitizedText("port-\(port)") }
}

/// What a source tells, in order.
package enum SightingEvent: Hashable, Sendable {
    /// New, or changed: the whole sighting as it stands.
    case seen(Sighting)
    /// The source says that it is gone (a goodbye, an unplugged phone, a port that refuses).
    case lost(Sighting.ID)
    /// The source itself went away (avahi-daemon died): nothing is known to be gone, nothing is known to be there.
    case sourceLost(Sighting.Source)
    /// The source is back and has said again everything it sees; what it did not say again is gone.
    case sourceReconciled(Sighting.Source)
}

/// The answer of a server to the question who it is.
package struct ServerIdentity: Hashable, Sendable {
    package var kind: EndpointKind
    /// The app's bundle identifier, when the server tells it to strangers.
    package var app: SanitizedText?
    package var name: SanitizedText?
    package var version: SanitizedText?
    /// New at each launch of the app, when the server tells it.
    package var boot: SanitizedText?
    /// Whether it says that it wants its session token with every request.
    package var wantsToken: Bool
    /// Whether it takes a message a line on one stream. Such a server may have one client, which the next one replaces.
    package var takesLines: Bool

    /// Whether there is nothing more to learn by asking again.
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
        boot: SanitizedText? = nil,
        wantsToken: Bool = false,
        takesLines: Bool = false
    ) {
        self.kind = kind
        self.app = app
        self.name = name
        self.version = version
        self.boot = boot
        self.wantsToken = wantsToken
        self.takesLines = takesLines
    }
}
