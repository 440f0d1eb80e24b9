import Model
import Testing

@Suite struct PairingStringTests {
    /// A valid token from the broker's generator.
    private static let invite = "pbi_0a1B2c3D_Zz9Yy8Xx7Ww6Vv5Uu4Tt3S_3qRfmQ"
    private static let pin = KeyPin(digest: [UInt8](repeating: 0xA5, count: 32))
    private static let pinText = pin?.description ?? "?"

    @Test(arguments: [
        (
            "PATCHBAY:1:127.0.0.1:7282::\(invite)",
            PairingString(host: "127.0.0.1", port: 7_282, pin: nil, invite: invite)
        ),
        ("PATCHBAY:1:[::1]:80::\(invite)", PairingString(host: "::1", port: 80, pin: nil, invite: invite)),
        (
            "PATCHBAY:1:mac-mini.local:65535:\(pinText):\(invite)",
            PairingString(host: "mac-mini.local", port: 65_535, pin: pin, invite: invite)
        ),
        (
            "PATCHBAY:1:[fe80::1%eth0]:1:\(pinText):\(invite)",
            PairingString(host: "fe80::1%eth0", port: 1, pin: pin, invite: invite)
        ),
    ])
    func `a pairing string is parsed, and written in the same way`(text: String, value: PairingString) throws {
        #expect(try PairingString(text) == value)
        #expect(value.description == text)
    }

    @Test(arguments: [
        ("", PairingString.ParseError.notAPairingString), ("pbi_", .notAPairingString),
        ("patchbay:1:127.0.0.1:7282::\(invite)", .notAPairingString),
        ("PATCHBAY:2:127.0.0.1:7282::\(invite)", .unknownVersion), ("PATCHBAY:", .incomplete),
        ("PATCHBAY:1:127.0.0.1:7282:\(invite)", .incomplete), ("PATCHBAY:1:a:7283:\(pinText)", .incomplete),
        ("PATCHBAY:1", .incomplete), ("PATCHBAY:\u{301}", .unknownVersion),
        ("PATCHBAY:\u{301}1:127.0.0.1:7282::\(invite)", .unknownVersion),
        ("PATCHBAY:1:127.0.0.1:0::\(invite)", .invalidAddress),
        ("PATCHBAY:1:127.0.0.1:07282::\(invite)", .invalidAddress),
        ("PATCHBAY:1:127.0.0.1:65536::\(invite)", .invalidAddress),
        ("PATCHBAY:1::7282::\(invite)", .invalidAddress), ("PATCHBAY:1:[]:7282::\(invite)", .invalidAddress),
        ("PATCHBAY:1:::1:7282::\(invite)", .invalidAddress), ("PATCHBAY:1:[a]:7282::\(invite)", .invalidAddress),
        ("PATCHBAY:1:a b:7282::\(invite)", .invalidAddress), ("PATCHBAY:1:a/b:7282::\(invite)", .invalidAddress),
        ("PATCHBAY:1:a:7282:\(pinText.lowercased()):\(invite)", .invalidPin),
        ("PATCHBAY:1:a:7282:\(pinText.dropLast()):\(invite)", .invalidPin),
        ("PATCHBAY:1:a:7282::\(invite.lowercased())", .invalidInvite),
        ("PATCHBAY:1:a:7282::\(invite) ", .invalidInvite), ("PATCHBAY:1:a:7282::", .invalidInvite),
        (String(repeating: "x", count: 257), .tooLong),
        ("PATCHBAY:1:\(String(repeating: "a", count: 256)):7282::\(invite)", .tooLong),
    ])
    func `another text is rejected with the first wrong part`(text: String, error: PairingString.ParseError) {
        #expect(throws: error) { try PairingString(text) }
    }
}
