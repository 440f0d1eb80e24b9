import Model

@testable import Transport

/// Promises for keys and certificates as PEM: what is read has a pin, and is written in a way that reads back.
enum PEMPromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        let text = String(decoding: input, as: UTF8.self)
        if let key = try? CertificateKey(pem: text) {
            try promise("a key reads back with its pin", (try? CertificateKey(pem: key.pem))?.pin == key.pin)
        }
        if let identity = try? TLSIdentity(pem: text) {
            try promise(
                "an identity reads back with its pin",
                (try? TLSIdentity(pem: identity.pem))?.pin == identity.pin
            )
        }
        _ = KeyPin(text).map(\.description)
    }
}
