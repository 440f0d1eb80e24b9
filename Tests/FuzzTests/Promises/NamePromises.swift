import Model

@testable import Discovery

/// Promises for names from the network: DNS names, their display, and UDIDs.
enum NamePromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        try dns(input)
        var choices = Choices(input)
        var wire: [UInt8] = []
        for _ in 0..<choices.number(below: 8) {
            let label = choices.bytes(1 + choices.number(below: 63))
            wire += [UInt8(label.count)] + label
        }
        try dns(wire + [0] + choices.remainder())

        let text = String(decoding: input, as: UTF8.self)
        for limit in [0, 7, SanitizedText.nameLimit, .max] { try shown(text, limit: limit) }
        try phone(text)
        choices = Choices(input)
        try phone(choices.letters(choices.one(of: [24, 40]), of: Array("09afAF".utf8)))
    }

    private static func dns(_ data: [UInt8]) throws(Violation) {
        var rest = data[...]
        guard let name = DNSName(reading: &rest) else {
            try promise("what is no name is no target of a PTR record", DNSName(pointerData: data) == nil)
            return
        }
        let read = Array(data.prefix(data.count - rest.count))
        let written: [UInt8] = name.labels.flatMap { [UInt8($0.count)] + $0 } + [0]
        try promise("a name is read as it stands", written == read && read.count <= 255)
        try promise("a PTR record holds one name and nothing else", (DNSName(pointerData: data) != nil) == rest.isEmpty)
        try promise("a name is asked for in plain ASCII", name.escaped.utf8.allSatisfy { (0x21...0x7E).contains($0) })
        try promise("what is asked for is that name", unescaped(name.escaped) == name.labels)
    }

    /// Unescapes like avahi_unescape_label.
    private static func unescaped(_ text: String) -> [[UInt8]] {
        var labels: [[UInt8]] = []
        var label: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "."):
                labels.append(label)
                label = []
            case UInt8(ascii: "\\"):
                if let code = UInt8(String(decoding: rest.prefix(3), as: UTF8.self)), rest.count >= 3 {
                    label.append(code)
                    rest = rest.dropFirst(3)
                } else {
                    label += [rest.popFirst() ?? 0]
                }
            default: label.append(byte)
            }
        }
        return text.isEmpty ? [] : labels + [label]
    }

    private static func shown(_ raw: String, limit: Int) throws(Violation) {
        let text = SanitizedText(raw, limit: limit).text
        try promise("what is shown is no longer than the limit", text.utf8.count <= limit)
        try promise("what is shown moves no cursor", text.unicodeScalars.allSatisfy(SanitizedText.isSafe))
        try promise(
            "what is clean stays as it is",
            SanitizedText(text, limit: limit).text.utf8.elementsEqual(text.utf8)
        )
        let isClean = raw.utf8.count <= limit && raw.unicodeScalars.allSatisfy(SanitizedText.isSafe)
        try promise("what was clean was left alone", !isClean || text.utf8.elementsEqual(raw.utf8))
    }

    private static func phone(_ text: String) throws(Violation) {
        guard let udid = UDID(text) else { return }
        try promise("a phone has one spelling", UDID(udid.text)?.text == udid.text)
        let digits = text.utf8.filter { $0 != UInt8(ascii: "-") }.map { $0 | 0x20 }
        try promise(
            "its digits are those given",
            udid.text.utf8.filter { $0 != UInt8(ascii: "-") }.map { $0 | 0x20 } == digits
        )
        try promise("no path is among its signs", udid.text.utf8.allSatisfy { $0 != 0x2F && $0 != 0x2E && $0 > 0x20 })
    }
}
