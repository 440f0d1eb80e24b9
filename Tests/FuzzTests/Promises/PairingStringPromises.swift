import Model

@testable import AccessControl

/// Promises for pairing strings: parsing returns the printed value, and every value can be printed and parsed.
enum PairingStringPromises {
    private static let hosts = [
        "127.0.0.1", "[::1]", "127.0.0.2", "localhost", "mac.local", "192.168.1.2", "[fe80::1%eth0]", "[::1", "::1", "",
    ]
    private static let hostSigns = ["a.-", "az09AZ.-:%[]_ \u{E9}"].map { Array($0.utf8) }
    private static let base32 = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

    static func check(_ input: [UInt8]) throws(Violation) {
        try read(String(decoding: input, as: UTF8.self))

        var choices = Choices(input)
        let invite = String(decoding: TokenPromises.made(&choices, [.invite]), as: UTF8.self)
        let pin = choices.letters(51, of: base32) + choices.one(of: ["A", "Q", "B", ""])
        let host =
            choices.number(below: 4) == 0
            ? choices.letters(Int(choices.byte()), of: choices.one(of: hostSigns)) : choices.one(of: hosts)
        let port = UInt16(choices.number(below: 65_536))
        for pin in [pin, nil] {
            guard let token = try? Token(invite),
                let string = try? PairingString(host: host, port: port, pin: pin, invite: token)
            else { continue }
            let text = string.reveal()
            try promise("what can be printed can be read", (try? PairingString(text))?.reveal() == text)
            try read(text)
        }
        var text = Array("PATCHBAY:1:\(host):\(port):\(choices.one(of: [pin, ""])):\(invite)".utf8)
        for _ in 0..<choices.number(below: 4) { choices.edit(&text) }
        try read(String(decoding: text, as: UTF8.self))
    }

    private static func read(_ text: String) throws(Violation) {
        let count = text.utf8.count
        do {
            let string = try PairingString(text)
            try promise("no more is read than the limit", count <= PairingString.lengthLimit)
            try promise("what was read is printed as it was", string.reveal().utf8.elementsEqual(text.utf8))
            let isHere = string.host == "127.0.0.1" || string.host == "[::1]"
            try promise("only this machine has no pin", isHere == (string.pin == nil))
            try promise("port 0 is none", string.port > 0)
            try promise("its token is an invite", string.invite.kind == .invite)
            try promise("printing it does not print the invite", !"\(string)".contains(string.invite.reveal()))
        } catch let violation as Violation {
            throw violation
        } catch {
            guard let error = error as? AccessError, case .notAPairingString = error else {
                throw Violation(promise: "a refusal says that it is no pairing string")
            }
            // Short texts, such as a single letter, occur in any message.
            try promise("a refusal does not repeat what was given", count < 40 || !error.description.contains(text))
        }
    }
}
