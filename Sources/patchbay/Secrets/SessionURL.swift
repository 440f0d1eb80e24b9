/// What AppReveal says at each launch of an app: the port it listens on, and the token of this session.
struct SessionURL: Sendable, Equatable {
    let port: UInt16
    let token: Secret
}
