/// A request that waits for a person: the answer to `POST /v1/requests`.
package struct AccessRequestCreated: Sendable, Codable {
    package let request: AccessRequest
    /// What to ask with how it stands: a secret.
    package let handle: String
    /// Seconds to wait between two such questions.
    package let interval: Int
    /// What a person has to type.
    package let approveWith: String

    package init(request: AccessRequest, handle: String, interval: Int) {
        self.request = request
        self.handle = handle
        self.interval = interval
        approveWith = "patchbay approve \(request.code)"
    }
}
