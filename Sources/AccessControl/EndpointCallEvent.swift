package import Model

/// One call of an endpoint, as much of it as is written down: never what was sent and never what came back.
package struct EndpointCallEvent: Hashable, Sendable {
    package let endpoint: EndpointID
    /// The tool, or what else was asked for.
    package let subject: SanitizedText
    /// Of the answer.
    package let bytes: Int
    /// How it ended, as a word of ours.
    package let outcome: String

    package init(of endpoint: EndpointID, subject: SanitizedText, bytes: Int, outcome: String) {
        self.endpoint = endpoint
        self.subject = subject
        self.bytes = bytes
        self.outcome = outcome
    }
}
