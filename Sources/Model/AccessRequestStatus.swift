/// How a request stands: the answer to `POST /v1/requests/poll`.
package struct AccessRequestStatus: Sendable, Codable {
    package enum State: String, Hashable, Sendable, Codable {
        case waiting
        case denied
        case granted
    }

    package let state: State
    /// Seconds until the next question, while it waits.
    package let interval: Int?
    /// With its secret, when it is granted.
    package let granted: IssuedGrant?

    package init(state: State, interval: Int? = nil, granted: IssuedGrant? = nil) {
        self.state = state
        self.interval = interval
        self.granted = granted
    }
}
