import Model
import TestSupport
import Testing

@testable import AccessControl

@Suite struct PairingStringTests {
    private static let pin = String(repeating: "ABCDEFGHIJKLMNOPQRSTUVWXYZ", count: 2).prefix(51) + "Q"
    private static let invite = Token(random: .invite)

    @Test(arguments: [
        ("127.0.0.1", nil), ("[::1]", nil), ("mac.local", String(pin)), ("192.168.1.2", String(pin)),
        ("[fe80::1%eth0]", String(pin)),
    ])
    func `a pairing string parses as it was printed`(host: String, pin: String?) throws {
        let string = try PairingString(host: host, port: 7_282, pin: pin, invite: Self.invite)
        let read = try PairingString(string.reveal())

        #expect(read.host == host && read.port == 7_282 && read.pin == pin)
        #expect(read.invite.reveal() == Self.invite.reveal())
        #expect(!"\(string)".contains(Self.invite.reveal()))
    }

    @Test func `another version, a missing or extra pin, or an invalid part is rejected`() {
        let invite = Self.invite.reveal()
        let strings = [
            "", "PATCHBAY", "PATCHBAY:2:127.0.0.1:1::\(invite)", "PATCHBAY:1:127.0.0.1:7282:\(Self.pin):\(invite)",
            "PATCHBAY:1:mac.local:7282::\(invite)", "PATCHBAY:1:mac.local:0:\(Self.pin):\(invite)",
            "PATCHBAY:1:mac.local:07282:\(Self.pin):\(invite)", "PATCHBAY:1:::1:7282::\(invite)",
            "PATCHBAY:1:[::1:7282::\(invite)", "PATCHBAY:1:[::1]x:7282::\(invite)",
            "PATCHBAY:1:a b:7282:\(Self.pin):\(invite)", "PATCHBAY:1:mac.local:7282:\(Self.pin.dropLast())B:\(invite)",
            "PATCHBAY:1:127.0.0.1:7282::\(invite.dropLast())", "PATCHBAY:1:127.0.0.1:7282::\(invite):",
            "patchbay:1:127.0.0.1:7282::\(invite)", "PATCHBAY:1:127.0.0.1:7282::\(Token(random: .grant).reveal())",
            "PATCHBAY:1:\(String(repeating: "a", count: 300)):7282:\(Self.pin):\(invite)",
        ]
        for string in strings {
            let error = #expect(throws: AccessError.self, "\(string)") { try PairingString(string) }
            #expect(error?.description.contains(invite) == false)
        }
    }

    @Test func `a combining character after a colon is rejected`() {
        #expect(throws: AccessError.self) {
            try PairingString("PATCHBAY:\u{301}1:127.0.0.1:7282::\(Self.invite.reveal())")
        }
    }

    @Test func `a pairing string that is too long to parse is not created`() throws {
        func make(_ length: Int) throws {
            let host = String(repeating: "a", count: length)
            let string = try PairingString(host: host, port: 7_282, pin: String(Self.pin), invite: Self.invite)
            _ = try PairingString(string.reveal())
        }
        try make(144)
        #expect(throws: AccessError.self) { try make(145) }
    }

    @Test func `the parser accepts arbitrary bytes without crashing`() {
        var random = SeededGenerator(seed: 2)
        let whole = Array("PATCHBAY:1:[::1]:7282::\(Self.invite.reveal())".utf8)
        var accepted = 0
        for _ in 0..<20_000 {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let index = Int.random(in: bytes.indices, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.remove(at: index)
                default: bytes.insert(UInt8.random(in: 0...255, using: &random), at: index)
                }
            }
            let text = String(decoding: bytes, as: UTF8.self)
            if let read = try? PairingString(text) {
                accepted += 1
                #expect(read.reveal() == text)
            }
        }
        // A mutation may produce another valid port or host.
        #expect(accepted < 4_000)
    }
}
