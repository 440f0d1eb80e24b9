import Model

extension GrantBinding {
    /// Whether a call that came through this door comes from whom the grant is bound to.
    func isMet(by origin: RequestSource) -> Bool {
        switch (self, origin) {
        case (.bearer, _): true
        case (.user(let uid), .unix(let caller)): uid == caller
        case (.key(let key), .tls(_, let proved)): key == proved
        case (.user, _), (.key, _): false
        }
    }
}
