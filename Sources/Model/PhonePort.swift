/// A listening port of an app on a phone, as the phone itself reports it.
///
/// The kernel of the phone names the owner of the port and the writer of a log line. So no app can report a port for
/// another one.
package struct PhonePort: Hashable, Sendable {
    package let port: UInt16
    /// The user of the app on the phone (Linux UID). Each app has its own.
    package let user: UInt32
    /// The name of the app's package; nil if the phone does not tell it, or if several packages share the user.
    package let app: SanitizedText?
    /// The URL of this port that the app wrote to its log; nil without one.
    package let announcement: AppAnnouncement?

    package init(
        port: UInt16,
        user: UInt32,
        app: SanitizedText? = nil,
        announcement: AppAnnouncement? = nil
    ) {
        self.port = port
        self.user = user
        self.app = app
        self.announcement = announcement
    }
}

/// A URL with a secret that an app wrote to its log: the session URL of AppReveal, or the URL of a Dart VM service.
///
/// Descriptions do not contain the secret.
package struct AppAnnouncement: Hashable, Sendable {
    /// The protocol of the server: `appreveal` or `dart-vm`.
    package let kind: EndpointKind
    package let port: UInt16
    /// The process that wrote the line, on its phone.
    package let processID: UInt32
    private let secret: String

    package init(kind: EndpointKind, port: UInt16, secret: String, processID: UInt32) {
        (self.kind, self.port, self.secret, self.processID) = (kind, port, secret, processID)
    }

    /// Returns the secret. Allowed use: storing it as an endpoint secret.
    package func reveal() -> String { secret }
}

extension AppAnnouncement: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "\(kind) on port \(port)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
