import Model
import Testing

@Suite struct TeamPairingStringTests {
    private static let invite = "pbi_0a1B2c3D_Zz9Yy8Xx7Ww6Vv5Uu4Tt3S_3qRfmQ"
    private static let pin = KeyPin(digest: [UInt8](repeating: 0xA5, count: 32))
    private static let pinText = pin?.description ?? "?"

    @Test(arguments: [("10.0.0.7", "10.0.0.7"), ("fd00::7", "[fd00::7]"), ("lab1.example.com", "lab1.example.com")])
    func `a string is parsed, and written in the same way`(host: String, written: String) throws {
        let text = "PATCHBAY-TEAM:1:\(written):7284:\(Self.pinText):\(Self.invite)"
        let parsed = try TeamPairingString(text)

        #expect(parsed.host == host && parsed.port == 7_284 && parsed.pin == Self.pin && parsed.invite == Self.invite)
        #expect(parsed.description == text)
    }

    @Test(arguments: [
        ("PATCHBAY:1:10.0.0.7:7284:\(pinText):\(invite)", PairingString.ParseError.notAPairingString),
        ("PATCHBAY-TEAM:2:10.0.0.7:7284:\(pinText):\(invite)", .unknownVersion),
        ("PATCHBAY-TEAM:1:10.0.0.7:7284::\(invite)", .invalidPin),
        ("PATCHBAY-TEAM:1:10.0.0.7:7284:\(pinText)", .incomplete),
        ("PATCHBAY-TEAM:1:10.0.0.7:0:\(pinText):\(invite)", .invalidAddress),
        ("PATCHBAY-TEAM:1:10.0.0.7:7284:\(pinText):\(invite)x", .invalidInvite),
        ("PATCHBAY-TEAM:PATCHBAY:1:10.0.0.7:7284:\(pinText):\(invite)", .unknownVersion),
    ])
    func `any other text is refused, also the string of one broker`(text: String, error: PairingString.ParseError) {
        #expect(throws: error) { try TeamPairingString(text) }
    }

    @Test func `the string of a team is no string of one broker`() {
        #expect(throws: PairingString.ParseError.notAPairingString) {
            try PairingString("PATCHBAY-TEAM:1:10.0.0.7:7284:\(Self.pinText):\(Self.invite)")
        }
    }
}
