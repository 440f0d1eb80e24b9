import Model
import TestSupport
import Testing

@testable import Discovery

@Suite struct DNSNameTests {
    @Test func `a PTR target is parsed label by label`() throws {
        let name = try #require(DNSName(pointerData: wire("My App", "_http", "_tcp", "local")))

        #expect(name.labels.map { String(decoding: $0, as: UTF8.self) } == ["My App", "_http", "_tcp", "local"])
    }

    @Test(
        arguments: [
            [], [5], [3, 65, 66], [0xC0, 0x0C], [64] + [UInt8](repeating: 65, count: 64) + [0], [1, 65], [1, 65, 0, 0],
        ] as [[UInt8]]
    )
    func `data other than one complete name is rejected`(data: [UInt8]) { #expect(DNSName(pointerData: data) == nil) }

    @Test func `a name of more than 255 bytes is rejected`() {
        let labels = [String](repeating: String(repeating: "a", count: 63), count: 4)

        #expect(DNSName(pointerData: wire(labels)) == nil)
        #expect(DNSName(pointerData: wire(Array(labels.dropLast()))) != nil)
    }

    @Test func `unusual bytes are escaped in Avahi's notation`() {
        let name = DNSName(labels: [Array("a.b\\c d\u{1B}é".utf8), Array("local".utf8)])

        #expect(name.escaped == #"a\.b\\c\032d\027\195\169.local"#)
    }

    @Test func `a label with a zero byte or invalid UTF-8 cannot be queried`() {
        #expect(!DNSName(labels: [[65, 0, 66]]).isQueryable)
        #expect(!DNSName(labels: [[0xFF]]).isQueryable)
        #expect(!DNSName(labels: []).isQueryable)
        #expect(DNSName(labels: [Array("é".utf8)]).isQueryable)
    }

    @Test func `an SRV record gives port and target`() throws {
        let record = try #require(SRVRecord(data: [0, 0, 0, 0, 0x1F, 0x90] + wire("phone", "local")))

        #expect(record.port == 8080)
        #expect(record.target.escaped == "phone.local")
    }

    @Test(
        arguments: [
            [], [0, 0, 0, 0, 1], [0, 0, 0, 0, 1, 2], [0, 0, 0, 0, 1, 2, 0], [0, 0, 0, 0, 1, 2, 1, 65, 0, 9],
        ]
            as [[UInt8]]
    )
    func `an SRV record that is truncated, has no host or has extra bytes is rejected`(data: [UInt8]) {
        #expect(SRVRecord(data: data) == nil)
    }

    @Test func `TXT data keeps its order and ends before a string that is too long`() {
        let txt = TXTRecord(recordData: [3] + Array("b=2".utf8) + [0, 1] + Array("a".utf8) + [9] + Array("c=3".utf8))

        #expect(txt.entries.map(\.key) == ["b", "a"])
    }

    @Test func `the parsers accept or reject any bytes without crashing`() {
        var random = SeededGenerator(seed: 42)
        for _ in 0..<20_000 {
            let data = (0..<Int.random(in: 0...80, using: &random)).map { _ in
                // Small numbers are frequent, so that some labels are complete.
                Bool.random(using: &random)
                    ? UInt8.random(in: 0...8, using: &random) : .random(in: 0...255, using: &random)
            }
            if let name = DNSName(pointerData: data) {
                #expect(name.labels.reduce(1) { $0 + $1.count + 1 } == data.count)
                #expect(name.escaped.utf8.allSatisfy { (0x21...0x7E).contains($0) })
            }
            if let record = SRVRecord(data: data) { #expect(record.target.isQueryable) }
            #expect(TXTRecord(recordData: data).entries.count <= TXTRecord.keyLimit)
        }
    }
}
