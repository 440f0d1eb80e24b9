import Client
import Model
import TestSupport
import Testing

@testable import patchbay

@Suite struct PairingArgumentTests {
    /// A valid token from the broker's generator.
    private static let invite = "pbi_0a1B2c3D_Zz9Yy8Xx7Ww6Vv5Uu4Tt3S_3qRfmQ"

    @Test(arguments: [
        ("PATCHBAY:1:127.0.0.1:7282::\(invite)", BrokerAddress.loopback(host: "127.0.0.1", port: 7_282)),
        ("PATCHBAY:1:[::1]:80::\(invite)", .loopback(host: "::1", port: 80)), (invite, nil),
    ])
    func `a pairing string of this machine and an invite token are accepted`(text: String, broker: BrokerAddress?)
        throws
    {
        let argument = try PairingArgument(text)

        #expect(argument.broker == broker)
        #expect(argument.invite.reveal() == Self.invite)
    }

    @Test func `each single mistyped letter is detected before the token is sent`() {
        for index in Self.invite.indices {
            for wrong in ["x", "7", "_"] where String(Self.invite[index]) != wrong {
                let typo = Self.invite.replacingCharacters(in: index, with: wrong)
                let error = #expect(throws: CLIError.self) { try PairingArgument("PATCHBAY:1:127.0.0.1:7282::\(typo)") }
                #expect(error?.status == .usage)
                #expect(error.map { "\($0)".contains(String(typo.dropFirst(13).prefix(22))) } == false)
            }
        }
    }

    @Test(arguments: [
        "", "PATCHBAY:", "PATCHBAY:2:127.0.0.1:7282::\(invite)", "PATCHBAY:1:127.0.0.1:0::\(invite)",
        "PATCHBAY:1:127.0.0.1:x::\(invite)", "PATCHBAY:1:127.0.0.1:7282:\(invite)",
        "patchbay:1:127.0.0.1:7282::\(invite)", "PATCHBAY:\u{301}1:127.0.0.1:7282::\(invite)",
        String(repeating: "x", count: 10_000_000), invite.lowercased(), "\(invite) ", invite.replacing("i", with: "і"),
    ])
    func `any other input is rejected and not repeated`(text: String) {
        let error = #expect(throws: CLIError.self) { try PairingArgument(text) }

        #expect(error?.status == .usage)
        #expect((error.map { "\($0)".count } ?? .max) < 300)
    }

    @Test func `a mutated pairing string is rejected, or it has the same invite and a broker on this machine`() {
        var random = SeededGenerator(seed: 2)
        let whole = Array("PATCHBAY:1:[::1]:7282::\(Self.invite)".utf8)
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
            guard let argument = try? PairingArgument(String(decoding: bytes, as: UTF8.self)) else { continue }
            accepted += 1
            #expect(argument.invite.reveal() == Self.invite)
            if case .loopback? = argument.broker {} else { Issue.record("\(bytes)") }
        }
        // A mutation may produce another valid port.
        #expect(accepted > 0 && accepted < 4_000)
    }

    @Test(arguments: ["192.168.1.7", "broker.local", "127.0.0.1.evil.test", "[fe80::1]", "localhost"])
    func `an invite is not sent to another machine without a key pin`(host: String) {
        let error = #expect(throws: CLIError.self) { try PairingArgument("PATCHBAY:1:\(host):7282::\(Self.invite)") }
        #expect(error?.status == .notPermitted)
    }

    @Test func `a pairing string without its end is called incomplete`() {
        let error = #expect(throws: CLIError.self) { try PairingArgument("PATCHBAY:1:192.168.1.7:7283:PIN") }
        #expect(error?.message == "the pairing string is invalid: it is incomplete; copy the whole string")
        #expect(error?.hint == "paste the whole string again, or ask for a new one: patchbay pair --remote")
    }

    @Test func `the error for a missing local broker says that the string is for the broker's own machine`() {
        let error = JoinCommand.noLocalBroker(at: "127.0.0.1:7282")
        #expect(error.status == .notReachable)
        #expect(error.message.hasPrefix("no broker listens at 127.0.0.1:7282"))
        #expect(error.hint?.contains("patchbay pair --remote") == true)
    }

    private func issued(at addresses: [String]?) -> IssuedInvite {
        IssuedInvite(invite: SampleEndpoints.invite(), token: Self.invite, pairing: nil, addresses: addresses)
    }

    @Test func `a QR code is printed only where it fits in the terminal`() throws {
        func text(_ terminal: Console.Size?) throws -> String {
            let issued = issued(at: nil)
            return try PairingInstructions.text(issued, string: Self.invite, terminal: terminal, isColoured: false)
        }
        #expect(try text(Console.Size(columns: 200, rows: 100)).contains("█"))
        for small in [Console.Size(columns: 20, rows: 100), Console.Size(columns: 200, rows: 10)] {
            let text = try text(small)
            #expect(!text.contains("█") && text.contains(Self.invite))
            #expect(!text.contains("Scan"), "there is no code to scan")
            #expect(text.contains("but the terminal has \(small.columns) and \(small.rows)."))
        }
        #expect(try !text(nil).contains("QR") && text(nil).contains(Self.invite))
    }

    @Test(arguments: [(["127.0.0.1:7283"], true), (["[::1]:7283"], true), (["192.168.1.7:7283"], false), (nil, false)])
    func `the instructions warn about a remote listener on loopback`(addresses: [String]?, warns: Bool) throws {
        let issued = issued(at: addresses)

        let text = try PairingInstructions.text(issued, string: Self.invite, terminal: nil, isColoured: false)

        #expect(text.contains("try: patchbay remote on") == warns)
        #expect(!text.contains("Scan"), "without a terminal there is no code")
    }

    @Test(arguments: [("192.168.1.7", "192.168.1.7"), ("[fe80::1%eth0]", "fe80::1%eth0"), ("127.0.0.1", "127.0.0.1")])
    func `a pairing string with a key pin is for the broker with that key`(text: String, host: String) throws {
        let pin = try #require(KeyPin(digest: [UInt8](repeating: 7, count: 32)))

        let argument = try PairingArgument("PATCHBAY:1:\(text):7283:\(pin):\(Self.invite)")

        #expect(argument.broker == .remote(host: host, port: 7_283, pin: pin))
    }

    @Test func `the string of a team is named, and is not parsed`() throws {
        let pin = String(repeating: "A", count: 52)
        let error = #expect(throws: CLIError.self) {
            try PairingArgument("PATCHBAY-TEAM:1:10.0.0.7:7284:\(pin):\(Self.invite)")
        }
        #expect(error == .usage("this is the string of patchbay team invite", try: "patchbay team join -"))
    }
}

extension String {
    fileprivate func replacingCharacters(in index: Index, with text: String) -> String {
        self[..<index] + text + self[self.index(after: index)...]
    }
}
