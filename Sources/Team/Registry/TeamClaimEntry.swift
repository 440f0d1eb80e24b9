import Model

/// A claim in the team registry, with a number that makes the values of two attempts different.
struct TeamClaimEntry: Encodable {
    private enum Keys: String, CodingKey { case attempt }

    let claim: TeamClaim
    let attempt: String

    /// - Throws: `TeamError.notEncoded`, also for a claim that other hosts would ignore because of its size.
    func bytes(for key: TeamKey) throws(TeamError) -> [UInt8] {
        let bytes = try TeamCoding.bytes(of: self, for: key)
        guard bytes.count <= TeamCoding.readLimit else {
            throw .notEncoded(key: key.text, reason: "it has \(bytes.count) bytes; shorten the note of the lease")
        }
        return bytes
    }

    func encode(to encoder: any Encoder) throws {
        try claim.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(attempt, forKey: .attempt)
    }
}
