import Model

extension TXTRecord {
    /// Reads the data of a TXT record: strings behind a length byte each (RFC 1035, section 3.3.14).
    ///
    /// Never fails: a string that claims more bytes than there are ends the reading.
    init(recordData data: [UInt8]) {
        var items: [[UInt8]] = []
        var rest = data[...]
        while let length = rest.popFirst(), rest.count >= Int(length) {
            if length > 0 { items.append(Array(rest.prefix(Int(length)))) }
            rest = rest.dropFirst(Int(length))
        }
        self.init(items: items)
    }
}
