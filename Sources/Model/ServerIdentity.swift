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
