/// The data of an SRV record: where an instance listens (RFC 2782).
struct SRVRecord: Hashable, Sendable {
    let port: UInt16
    let target: DNSName

    /// Priority, weight and port, two bytes each, and an uncompressed name. Nil when it is anything else.
    init?(data: [UInt8]) {
        guard data.count > 6 else { return nil }
        port = UInt16(data[4]) << 8 | UInt16(data[5])
        var rest = data[6...]
        guard let target = DNSName(reading: &rest), rest.isEmpty, target.isAskable else { return nil }
        self.target = target
    }
}
