import Model

/// What resolving a service gave: the contents of its SRV and TXT records.
struct ResolvedService: Hashable, Sendable {
    /// The SRV target in Avahi's escaped notation.
    let host: String
    let port: UInt16
    let txt: TXTRecord
    /// The one address that a resolver names by itself, when it was asked to.
    let address: IPAddress?

    init(host: String, port: UInt16, txt: TXTRecord, address: IPAddress? = nil) {
        self.host = host
        self.port = port
        self.txt = txt
        self.address = address
    }
}
