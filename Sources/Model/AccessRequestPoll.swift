/// The question how a request stands: the body of `POST /v1/requests/poll`.
package struct AccessRequestPoll: Sendable, Codable {
    /// What `POST /v1/requests` answered.
    package let handle: String
    /// As in `RedemptionSpec`; the same ones in each question.
    package let client: String
    /// What the grant is to be called.
    package let name: SanitizedText?

    package init(handle: String, client: String, name: SanitizedText? = nil) {
        self.handle = handle
        self.client = client
        self.name = name
    }
}
