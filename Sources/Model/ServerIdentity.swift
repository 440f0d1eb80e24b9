/// The answer of a server to the question who it is.
package struct ServerIdentity: Hashable, Sendable {
    package var kind: EndpointKind
    /// The app's bundle identifier, when the server tells it to strangers.
    package var app: Untrusted?
    package var name: Untrusted?
    package var version: Untrusted?
    /// New at each launch of the app, when the server tells it.
    package var boot: Untrusted?
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
        app: Untrusted? = nil,
        name: Untrusted? = nil,
        version: Untrusted? = nil,
        boot: Untrusted? = nil,
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
