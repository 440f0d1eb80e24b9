import Foundation
import Model
import Testing

/// The texts of servers, which are repaired where their meaning leaves no doubt.
@Suite struct JSONRepairTests {
    @Test(arguments: [
        (#"{"a":1,"b":2,"a":3}"#, #"{"a":3,"b":2}"#), (#"{"a":NaN,"b":-Infinity}"#, #"{"a":null,"b":null}"#),
        ("[nan, 01, +1, .5, 0x10, undefined, None, -nan(ind), 1]", "[null,null,null,null,null,null,null,null,1]"),
        ("[1,]", "[1]"), (#"{"a":1 , }"#, #"{"a":1}"#), ("[]\0\0", "[]"), (" [1] \r\n\t", "[1]"),
        ("[\"a\tb\nc\"]", #"["a\tb\nc"]"#), (#"["C:\Users\dev \u12"]"#, #"["C:\\Users\\dev \\u12"]"#),
        ("\u{FEFF}[1]", "[1]"),
    ])
    func `a damaged text has one obvious reading`(text: String, expected: String) throws {
        let repaired = try RepairedJSON(text.utf8)

        #expect(repaired.json.text == expected)
        #expect(repaired.repairs.isEmpty == (text == " [1] \r\n\t"))
    }

    @Test func `bytes that are not UTF-8 become the replacement character`() throws {
        let repaired = try RepairedJSON([0x5B, 0x22, 0x61, 0xFF, 0x62, 0x22, 0x5D])

        #expect(repaired.json == ["a\u{FFFD}b"])
        #expect(repaired.repairs.losses() == "/0 has bytes that are not UTF-8")
    }

    @Test(arguments: ["[1] [2]", "{} x", "[1", #"{"a":1"#, #"{"a" 1}"#, "[1 2]", "[1,,2]", "NaN", "OK", "{a:1}", ""])
    func `a text without a certain structure stays an error`(text: String) {
        #expect(throws: JSONError.self) { try RepairedJSON(text.utf8) }
    }

    @Test(arguments: [0, 40]) func `the last of several values counts, at the place of the first`(others: Int) throws {
        let members = (0..<others).map { "\"n\($0)\":\($0)," }.joined()
        let text = "{\(members)\"a\":1,\"b\":2,\"a\":3,\"a\":4}"

        let repaired = try RepairedJSON(text.utf8)

        #expect(repaired.json.text == "{\(members)\"a\":4,\"b\":2}")
        #expect(repaired.repairs.count == 2)
        #expect(repaired.repairs.losses() == nil)
    }

    @Test func `an object that repeats many names is read in linear time`() throws {
        let names = (0..<100_000).map { "\"n\($0)\":1" }.joined(separator: ",")
        let start = ContinuousClock.now

        #expect(try RepairedJSON("{\(names),\(names)}".utf8).repairs.count == 100_000)

        // Quadratic time would need minutes.
        #expect(ContinuousClock.now - start < .seconds(20))
    }

    @Test func `what is lost is named with its path, up to three parts`() throws {
        let text = #"{"result":{"a/b":[0,NaN],"c":Infinity,"d":[NaN,NaN]}}"#

        let losses = try RepairedJSON(text.utf8).repairs.losses()

        #expect(
            losses
                == "/result/a~1b/1 was NaN, which is not JSON, and is null; /result/c was Infinity, which is not JSON, "
                + "and is null; /result/d/0 was NaN, which is not JSON, and is null; and 1 more"
        )
    }

    @Test func `a long word is named by its length, because a part of it could be a part of a token`() throws {
        let word = String(repeating: "a1b2c3d4", count: 8)

        let losses = try RepairedJSON("{\"session\":\(word)}".utf8).repairs.losses()

        #expect(losses == "/session was a word of 64 bytes, which is not JSON, and is null")
    }

    @Test func `a value that is nested too deep becomes null, and the rest stays`() throws {
        let deep = String(repeating: "[", count: 700) + #""]\"[""# + String(repeating: "]", count: 700)
        let text = #"{"a":1,"deep":\#(deep),"b":2}"#

        let repaired = try RepairedJSON(text.utf8)

        #expect(repaired.json["a"] == 1 && repaired.json["b"] == 2)
        #expect(
            repaired.json["deep"]?.text == String(repeating: "[", count: 511) + "null"
                + String(repeating: "]", count: 511)
        )
        #expect(repaired.repairs.count == 1)
        #expect(throws: JSONError.self) { try RepairedJSON(String(repeating: "[", count: 1_000_000).utf8) }
    }

    @Test func `a text of the maximum depth needs less than 1.5 MiB of stack, in a debug build too`() async throws {
        let text = String(repeating: #"{"a":["#, count: 256) + String(repeating: "]}", count: 256)
        let written = await withCheckedContinuation { continuation in
            let thread = Thread {
                let json = try? RepairedJSON(text.utf8).json
                continuation.resume(returning: json == json ? json?.text : nil)
            }
            // The smallest default of glibc is 2 MiB.
            thread.stackSize = 1_536 << 10
            thread.start()
        }
        #expect(written == text)
        #expect(try JSON(parsing: text.utf8, maxDepth: JSON.maxBrokerDepth).text == text)
    }

    @Test func `the texts of clients are not repaired`() {
        for text in [#"{"a":1,"a":2}"#, "[NaN]", "[1,]", "[\"\t\"]", "[1]\0"] {
            #expect(throws: JSONError.self) { try JSON(parsing: text) }
        }
        #expect(throws: Never.self) { try JSON(parsing: "\u{FEFF}[1]") }
    }
}
