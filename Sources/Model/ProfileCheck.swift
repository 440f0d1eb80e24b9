/// A profile in the list of the API.
package struct ProfileSummary: Hashable, Sendable, Codable {
    /// The endpoint kind, for example `app-debug`.
    package let name: String
    package let title: String
    /// The ports of phones on which the server usually listens.
    package let ports: [UInt16]
    package let file: String
    /// The number of tools. A server may list more functions itself.
    package let toolCount: Int

    package init(name: String, title: String, ports: [UInt16], file: String, toolCount: Int) {
        self.name = name
        self.title = title
        self.ports = ports
        self.file = file
        self.toolCount = toolCount
    }
}

/// A profile file to check, and the server to check it against.
package struct ProfileCheckSpec: Hashable, Sendable, Codable {
    /// The name of the file for error messages.
    package let file: String
    package let text: String
    /// Nil to check the file alone.
    package let target: TunnelTarget?

    package init(file: String, text: String, target: TunnelTarget? = nil) {
        self.file = file
        self.text = text
        self.target = target
    }
}

/// The result of a check of a valid profile file.
package struct ProfileCheck: Hashable, Sendable, Codable {
    /// One request of the recognition.
    package struct Step: Hashable, Sendable, Codable {
        /// The method and the path.
        package let request: String
        /// The HTTP status; nil without an HTTP response.
        package let status: Int?
        /// The unmet condition, which continues "it answers with". Nil if the response met all conditions.
        package let mismatch: String?

        package init(request: String, status: Int?, mismatch: String?) {
            self.request = request
            self.status = status
            self.mismatch = mismatch
        }
    }

    /// A server of the profile's kind.
    package struct Server: Hashable, Sendable, Codable {
        package let app: SanitizedText?
        package let version: SanitizedText?
        package let launchID: SanitizedText?

        package init(app: SanitizedText?, version: SanitizedText?, launchID: SanitizedText?) {
            self.app = app
            self.version = version
            self.launchID = launchID
        }
    }

    /// A read-only tool of the profile.
    package struct Tool: Hashable, Sendable, Codable {
        package enum Outcome: String, Hashable, Sendable, Codable {
            /// The response has the form that the profile describes.
            case answered
            case failed
            case skipped
        }

        package let name: String
        package let outcome: Outcome
        package let status: Int?
        /// The reason why the tool failed or was skipped.
        package let reason: String?

        package init(name: String, outcome: Outcome, status: Int? = nil, reason: String? = nil) {
            self.name = name
            self.outcome = outcome
            self.status = status
            self.reason = reason
        }
    }

    package let profile: ProfileSummary
    /// The requests of the recognition in order; empty without a target.
    package var steps: [Step] = []
    /// The recognised server; nil after a mismatch, and without a target.
    package var server: Server?
    /// The read-only tools of a recognised server.
    package var tools: [Tool] = []

    package init(profile: ProfileSummary) { self.profile = profile }
}
