import FoundationEssentials
import Model
import Testing

@Suite struct TXTRecordTests {
    private func record(_ items: String...) -> TXTRecord { TXTRecord(items: items.map { Array($0.utf8) }) }

    @Test func `the three forms of an item are kept apart`() {
        let record = record("flag", "empty=", "key=value=more")

        #expect(record.entries.map(\.key) == ["flag", "empty", "key"])
        #expect(record.entries.map(\.value) == [nil, [], Array("value=more".utf8)])
    }

    @Test func `the first of equal keys counts, and keys ignore case`() {
        let record = record("a=1", "A=2", "a")

        #expect(record.entries.count == 1)
        #expect(record["A"] == "1")
    }

    @Test func `an item without a key and an empty item are ignored`() {
        #expect(record("=v", "", "ok=1").entries.map(\.key) == ["ok"])
    }

    @Test func `a value of any bytes is preserved by JSON`() throws {
        var record = TXTRecord()
        record.set("binary", to: [0, 255, 61, 10])
        record.set("text", to: Array("grün".utf8))
        record.set("escape", to: Array("\u{1B}[2J".utf8))
        record.set("flag", to: nil)

        let json = try JSONEncoder().encode(record)

        #expect(try JSONDecoder().decode(TXTRecord.self, from: json) == record)
        #expect(!json.contains(0x1B))
    }

    @Test func `items keep their order`() {
        let items = ["z=1", "a=2", "m=3"].map { Array($0.utf8) }

        #expect(TXTRecord(items: items).items == items)
    }

    @Test func `a record of nine kilobytes is truncated and marked as such`() {
        let record = TXTRecord(items: (0..<100).map { Array("key\($0)=\(String(repeating: "x", count: 80))".utf8) })

        #expect(record.isTruncated)
        #expect(record.entries.count <= TXTRecord.keyLimit)
        #expect(record.items.reduce(0) { $0 + $1.count + 1 } <= TXTRecord.byteLimit)
    }

    @Test(arguments: [(100, 80), (40, 1), (7, 200)])
    func `a record above a limit keeps the keys that the broker uses, wherever they are`(count: Int, size: Int) {
        let others = (0..<count).map { Array("key\($0)=\(String(repeating: "x", count: size))".utf8) }
        let record = TXTRecord(
            items: others + ["bundleId=com.example.shop", "BOOT=7f", "path=/mcp"].map { Array($0.utf8) }
        )

        #expect(record.isTruncated)
        #expect(record["bundleId"] == "com.example.shop")
        #expect(record["boot"] == "7f")
        #expect(record["path"] == "/mcp")
        #expect(record.entries.first?.key == "key0")
        #expect(record.entries.count <= TXTRecord.keyLimit)
        #expect(record.items.reduce(0) { $0 + $1.count + 1 } <= TXTRecord.byteLimit)
    }

    @Test func `an invalid record has a validation error with the reason`() {
        var long = TXTRecord()
        long.set("k", to: [UInt8](repeating: 1, count: 255))
        var badKey = TXTRecord()
        badKey.set("a=b", to: nil)

        #expect(long.validationError?.contains("255") == true)
        #expect(badKey.validationError?.contains("6.4") == true)
        #expect(record("a=1").validationError == nil)
    }

    @Test func `random bytes never crash the parser`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            let items = (0..<Int.random(in: 0..<40, using: &random)).map { _ in
                (0..<Int.random(in: 0..<300, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
            }
            let record = TXTRecord(items: items)
            #expect(TXTRecord(items: record.items).entries == record.entries)
        }
    }
}
