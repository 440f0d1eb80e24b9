import FoundationEssentials
import Model

@testable import Discovery

/// Promises for TXT records: every rule of RFC 6763, section 6, and the limits.
enum TXTPromises {
    private typealias Pair = (key: [UInt8], value: [UInt8]?)

    static func check(_ input: [UInt8]) throws(Violation) {
        try read(input)
        try publish(input)
    }

    private static func read(_ input: [UInt8]) throws(Violation) {
        let record = TXTRecord(recordData: input)
        let (expected, isWhole) = pairs(of: input)
        let isSame =
            record.entries.count == expected.count
            && zip(record.entries, expected).allSatisfy { Array($0.key.utf8) == $1.key && $0.value == $1.value }
        try promise("a record is read by the RFC", isSame && record.isTruncated == !isWhole)
        try promise("what was read could be published", record.validationError == nil)
        try promise("the limits hold", record.entries.count <= 32 && wire(record.items).count <= 1_300)
        try promise(
            "what was read and written is the same",
            TXTRecord(recordData: wire(record.items)).entries == record.entries
        )
        try survivesJSON(record)

        var choices = Choices(input.reversed())
        let kind = choices.one(of: [EndpointKind.appreveal, .dartVM, .mcp])
        let instance = String(decoding: choices.run(), as: UTF8.self)
        for name in [instance, "AppReveal-\(instance)", "com.\(instance) #2"] {
            let identity = AdvertisedIdentity(instance: name, kind: kind, txt: record)
            let texts = [identity.app, identity.version, identity.launchID, identity.role].compactMap { $0?.text }
            try promise(
                "what an advert says of itself is clean and short",
                texts.allSatisfy { $0.utf8.count <= 155 && $0.unicodeScalars.allSatisfy(SanitizedText.isSafe) }
            )
        }
    }

    /// A published record is parsed with the same meaning.
    private static func publish(_ input: [UInt8]) throws(Violation) {
        var choices = Choices(input)
        var record = TXTRecord()
        for _ in 0..<choices.number(below: 40) where !choices.isEmpty {
            let key = String(decoding: choices.bytes(choices.number(below: 12)), as: UTF8.self)
            record.set(key, to: choices.number(below: 4) == 0 ? nil : choices.run())
        }
        guard record.validationError == nil else { return }
        let received = TXTRecord(recordData: wire(record.items))
        try promise("what may be published arrives whole", received.entries == record.entries && !received.isTruncated)
        try survivesJSON(record)
    }

    private static func survivesJSON(_ record: TXTRecord) throws(Violation) {
        let copy = (try? JSONCoding.encoder().encode(record)).flatMap {
            try? JSONCoding.decoder().decode(TXTRecord.self, from: $0)
        }
        try promise("a record in JSON is the same record", copy?.entries == record.entries)
    }

    private static func wire(_ items: [[UInt8]]) -> [UInt8] { items.flatMap { [UInt8($0.count)] + $0 } }

    /// A second implementation of the rules, with indices instead of slices.
    private static func pairs(of input: [UInt8]) -> (pairs: [Pair], isWhole: Bool) {
        var pairs: [Pair] = []
        var place = 0
        while place < input.count, place + Int(input[place]) < input.count {
            let item = Array(input[(place + 1)...].prefix(Int(input[place])))
            place += 1 + item.count
            let key = Array(item.prefix { $0 != 0x3D })
            let isKey = !key.isEmpty && key.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
            if isKey, !pairs.contains(where: { folded($0.key) == folded(key) }) {
                pairs.append((key, key.count == item.count ? nil : Array(item[(key.count + 1)...])))
            }
        }
        func size(_ pair: Pair) -> Int { pair.key.count + 1 + (pair.value.map { $0.count + 1 } ?? 0) }
        if pairs.count <= 32, pairs.reduce(0, { $0 + size($1) }) <= 1_300 { return (pairs, true) }
        let used = pairs.indices.filter {
            TXTRecord.usedKeys.contains(String(decoding: folded(pairs[$0].key), as: UTF8.self))
        }
        var kept: [Int] = []
        for order in [used, Array(Set(pairs.indices).subtracting(used)).sorted()] {
            for index in order {
                let total = kept.reduce(0) { $0 + size(pairs[$1]) } + size(pairs[index])
                if total > 1_300 || kept.count == 32 { break }
                kept.append(index)
            }
        }
        return (kept.sorted().map { pairs[$0] }, false)
    }

    private static func folded(_ key: [UInt8]) -> [UInt8] { key.map { (0x41...0x5A).contains($0) ? $0 + 32 : $0 } }
}
