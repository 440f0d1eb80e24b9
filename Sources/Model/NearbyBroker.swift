/// A broker that advertises its remote listener on the network: an element of `GET /v1/brokers`.
///
/// mDNS has no authentication, so every member is a claim. `patchbay join` compares the whole pin.
package struct NearbyBroker: Hashable, Sendable, Codable {
    /// The state of a broker's pairing.
    package enum PairState: String, Hashable, Sendable, Codable {
        /// An invite for other machines is open.
        case open
        case closed
    }

    /// The first characters of the pin of the broker's key; empty if the advertisement has none.
    package let id: SanitizedText
    package let name: SanitizedText
    /// The machine that announced the broker. Nil until its address is known.
    package let machine: SanitizedText?
    /// The numeric addresses, best first. A link-local one has its interface: `fe80::1%wlan0`.
    package let addresses: [String]
    package let port: UInt16
    package let pair: PairState

    /// The key `host` is older than the word machine, which leaves the word host to teams.
    private enum CodingKeys: String, CodingKey {
        case id, name
        case machine = "host"
        case addresses, port, pair
    }

    package init(
        id: SanitizedText,
        name: SanitizedText,
        machine: SanitizedText?,
        addresses: [String],
        port: UInt16,
        pair: PairState
    ) {
        self.id = id
        self.name = name
        self.machine = machine
        self.addresses = addresses
        self.port = port
        self.pair = pair
    }
}

/// The TXT record under which a broker advertises its remote listener (`_patchbay._tcp`).
package enum BrokerAdvertisement {
    /// The number of characters of the pin that are advertised: 80 bits.
    package static let pinPrefixLength = 16

    /// Returns the record. It has no secret: a pin is public.
    package static func txt(pin: KeyPin, pair: NearbyBroker.PairState) -> TXTRecord {
        var txt = TXTRecord()
        txt.set("v", to: Array("1".utf8))
        txt.set("id", to: Array("\(pin)".utf8.prefix(pinPrefixLength)))
        txt.set("pair", to: Array(pair.rawValue.utf8))
        return txt
    }

    /// Returns the claimed prefix of the pin; empty if the record has none of the right form.
    package static func id(in txt: TXTRecord) -> SanitizedText {
        let text = txt["id"] ?? ""
        // 16 letters are exactly 10 bytes.
        return SanitizedText(text.utf8.count == pinPrefixLength && Base32.decode(text) != nil ? text : "")
    }

    package static func pairState(in txt: TXTRecord) -> NearbyBroker.PairState {
        txt["pair"] == NearbyBroker.PairState.open.rawValue ? .open : .closed
    }
}
