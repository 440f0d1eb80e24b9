extension TunnelSpec {
    private enum Keys: String, CodingKey { case local, target, noRebind, isKept, allowsAnyUser, allowsBrowsers }

    /// Reads what is written without the two permissions as well: state files and callers that are older than they.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        self.init(
            local: try container.decode(ListenAddress.self, forKey: .local),
            target: try container.decode(TunnelTarget.self, forKey: .target),
            noRebind: try container.decode(Bool.self, forKey: .noRebind),
            isKept: try container.decode(Bool.self, forKey: .isKept),
            allowsAnyUser: try container.decodeIfPresent(Bool.self, forKey: .allowsAnyUser) ?? false,
            allowsBrowsers: try container.decodeIfPresent(Bool.self, forKey: .allowsBrowsers) ?? false
        )
    }
}
