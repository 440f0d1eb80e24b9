import Model

/// The entry of a host in the team registry.
extension TeamHost {
    /// The maximum number of addresses. Further ones are not published, and other hosts ignore them.
    static let addressLimit = 16
    /// The maximum length of an address in bytes. Longer ones are not published, and other hosts ignore them.
    static let addressLengthLimit = 255

    /// The host with text that is safe to print.
    var sanitized: TeamHost {
        with(
            version: SanitizedText(version).text,
            addresses: addresses.filter { $0.utf8.count <= Self.addressLengthLimit }.prefix(Self.addressLimit)
                .map { SanitizedText($0, limit: Self.addressLengthLimit).text }
        )
    }

    /// Returns the value of the host's entry, of at most `TeamCoding.valueLimit` bytes.
    ///
    /// A larger host loses its last addresses, because the first one is the best one.
    func bytes(for key: TeamKey) throws(TeamError) -> [UInt8] {
        var shorter = sanitized
        while true {
            let bytes = try TeamCoding.bytes(of: shorter, for: key)
            guard bytes.count > TeamCoding.valueLimit, !shorter.addresses.isEmpty else { return bytes }
            shorter = shorter.with(version: shorter.version, addresses: Array(shorter.addresses.dropLast()))
        }
    }

    private func with(version: String, addresses: [String]) -> TeamHost {
        TeamHost(name: name, version: version, addresses: addresses, since: since, generation: generation)
    }
}
