import Model
import Testing

@Suite struct JSONTests {
    @Test(arguments: [
        #"{"b":1,"a":[true,false,null],"é":"ü"}"#, "1.0", "-0", "12345678901234567890123", "1e-7", #""""#, "[]", "{}",
        "[[],{}]",
        #"["\"\\\n\r\t\u0001"]"#,
    ]) func `a parsed text is serialized unchanged`(_ text: String) throws {
        #expect(try JSON(parsing: text).text == text)
    }

    @Test(arguments: [10, 100_000]) func `a text of any size is parsed in the same way`(count: Int) async throws {
        let text = "[\(repeatElement("1", count: count).joined(separator: ","))]"

        #expect(try await JSON.parse(Array(text.utf8)).array?.count == count)
        await #expect(throws: JSONError(reason: .unexpectedEnd, offset: text.utf8.count - 1)) {
            try await JSON.parse(Array(text.utf8.dropLast()))
        }
    }

    @Test func `whitespace is accepted and not preserved`() throws {
        #expect(try JSON(parsing: " \t\r\n{ \"a\" : [ 1 , 2 ] } \n").text == #"{"a":[1,2]}"#)
    }

    @Test func `escapes are decoded, and a lone surrogate becomes the replacement character`() throws {
        #expect(try JSON(parsing: #""\u00e9\ud83d\ude00\/\b""#) == "é😀/\u{8}")
        #expect(try JSON(parsing: #""a\ud83dz""#) == "a\u{FFFD}z")
        #expect(try JSON(parsing: #""\ud83d\u0041\udc00""#) == "\u{FFFD}A\u{FFFD}")
    }

    @Test(arguments: [
        ("", JSONError.Reason.unexpectedEnd, 0), ("{", .unexpectedEnd, 1), (#"{"a""#, .unexpectedEnd, 4),
        (#""abc"#, .unexpectedEnd, 4),
        ("nul", .unexpectedEnd, 3), ("[1 2]", .unexpected, 3), ("[1,]", .unexpected, 3), ("01", .unexpected, 1),
        ("1.", .unexpectedEnd, 2), ("+1", .unexpected, 0), ("1e", .unexpectedEnd, 2), ("1 1", .unexpected, 2),
        ("'a'", .unexpected, 0),
        (#"{"a":1,"a":2}"#, .duplicateName, 7), ("\"\u{1}\"", .unexpected, 1), (#""\x""#, .unexpected, 2),
        (#""\u12""#, .unexpectedEnd, 3),
    ]) func `invalid JSON is rejected at the first invalid byte`(
        _ text: String,
        _ reason: JSONError.Reason,
        _ offset: Int
    ) {
        #expect(throws: JSONError(reason: reason, offset: offset)) { try JSON(parsing: text) }
    }

    @Test func `invalid UTF-8 is rejected`() {
        #expect(throws: JSONError(reason: .invalidUTF8, offset: 1)) { try JSON(parsing: [0x22, 0xFF, 0x22]) }
    }

    @Test func `nesting deeper than 128 levels is rejected`() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        _ = try JSON(parsing: nested(128))
        #expect(throws: JSONError(reason: .tooDeep, offset: 128)) { try JSON(parsing: nested(129)) }
    }

    @Test func `a duplicate name is found among many members`() {
        let members = (0..<40).map { "\"n\($0)\":\($0)" }.joined(separator: ",")
        #expect(throws: JSONError.self) { try JSON(parsing: "{\(members),\"n20\":1}") }
    }

    @Test(arguments: [0, 40]) func `two spellings of a letter are different names`(others: Int) throws {
        let members = (0..<others).map { "\"n\($0)\":\($0)," }.joined()
        let text = "{\(members)\"\u{E9}\":1,\"e\u{301}\":2}"
        let read = try JSON(parsing: text)

        #expect(read.bytes == Array(text.utf8))
        #expect(read["\u{E9}"] == 1 && read["e\u{301}"] == 2)
        #expect(throws: JSONError.self) { try JSON(parsing: "{\(members)\"e\u{301}\":1,\"e\u{301}\":2}") }
    }

    @Test(arguments: [3, 40]) func `of members with one name the last value counts, at the position of the first`(
        count: Int
    ) {
        let members = (0..<count).map { JSONObject.Member(name: "m\($0)", value: 0) }

        let object = JSONObject(members + [.init(name: "m1", value: 1)])

        #expect(object.members.map(\.name) == members.map(\.name))
        #expect(object["m1"] == 1 && object["m0"] == 0)
    }

    @Test func `a changed member keeps its position, and a removed member leaves no gap`() {
        var object: JSONObject = ["a": 1, "b": 2, "c": 3]
        object["a"] = 9
        object["b"] = nil
        object["d"] = "new"
        #expect(JSON.object(object).text == #"{"a":9,"c":3,"d":"new"}"#)
    }

    @Test(arguments: [
        ("3", 3), ("3.0", 3), ("1e3", 1_000), ("-7", -7), ("3.5", nil), ("1e400", nil), ("99999999999999999999", nil),
    ])
    func `a number is an integer if its value is one`(_ text: String, _ value: Int?) throws {
        #expect(try JSON(parsing: text).int == value)
    }
}
