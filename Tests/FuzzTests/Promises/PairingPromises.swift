import Model

/// Promises for pairing strings: one that is read is written in the same way.
enum PairingPromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        let text = String(decoding: input, as: UTF8.self)
        if let pairing = try? PairingString(text) {
            try promise("a string that is read is written in the same way", pairing.description == text)
            try promise("a host is plain", PairingString.isHost(pairing.host))
        }
        var choices = Choices(input)
        var made = Array("PATCHBAY:1:".utf8)
        made += choices.one(of: ["lab.local", "[fe80::1%en0]", "10.0.0.5", ""]).utf8
        made += ":\(choices.number(below: 65_536))::".utf8
        made += TokenPromises.made(&choices, [.invite])
        if let pairing = try? PairingString(String(decoding: made, as: UTF8.self)) {
            try promise(
                "a made string is read as it was made",
                Array(pairing.description.utf8) == made && pairing.pin == nil
            )
        }
    }
}
