import JSON
import Testing

@Suite struct JSONTests {
    @Test(arguments: [
        #"{"b":1,"a":[true,false,null],"é":"ü"}"#, "1.0", "-0", "12345678901234567890123", "1e-7", #""""#, "[]", "{}",
        "[[],{}]",
        #"["\"\\\n\r\t\u0001"]"#,
    ]) func `what is read is written again as it was`(_ text: String) throws {
        #expect(try JSON(parsing: text).text == text)
    }

    @Test(arguments: [10, 100_000]) func `a text of any size is read alike`(count: Int) async throws {
        let text = "[\(repeatElement("1", count: count).joined(separator: ","))]"

        #expect(try await JSON.parse(Array(text.utf8)).array?.count == count)
        await #expect(throws: JSONError(reason: .unfinished, offset: text.utf8.count - 1)) {
            try await JSON.parse(Array(text.utf8.dropLast()))
        }
    }

    @Test func `space between the parts is taken, and not kept`() throws {
        #expect(try JSON(parsing: " \t\r\n{ \"a\" : [ 1 , 2 ] } \n").text == #"{"a":[1,2]}"#)
    }

    @Test func `escapes are the characters they stand for, and half a pair is the replacement character`() throws {
        #expect(try JSON(parsing: #""\u00e9\ud83d\ude00\/\b""#) == "é😀/\u{8}")
        #expect(try JSON(parsing: #""a\ud83dz""#) == "a\u{FFFD}z")
        #expect(try JSON(parsing: #""\ud83d\u0041\udc00""#) == "\u{FFFD}A\u{FFFD}")
    }

    @Test(arguments: [
        ("", JSONError.Reason.unfinished, 0), ("{", .unfinished, 1), (#"{"a""#, .unfinished, 4),
        (#""abc"#, .unfinished, 4),
        ("nul", .unfinished, 3), ("[1 2]", .unexpected, 3), ("[1,]", .unexpected, 3), ("01", .unexpected, 1),
        ("1.", .unfinished, 2), ("+1", .unexpected, 0), ("1e", .unfinished, 2), ("1 1", .unexpected, 2),
        ("'a'", .unexpected, 0),
        (#"{"a":1,"a":2}"#, .twice, 7), ("\"\u{1}\"", .unexpected, 1), (#""\x""#, .unexpected, 2),
        (#""\u12""#, .unfinished, 3),
    ]) func `what is no JSON is refused where it stops being it`(
        _ text: String,
        _ reason: JSONError.Reason,
        _ offset: Int
    ) {
        #expect(throws: JSONError(reason: reason, offset: offset)) { try JSON(parsing: text) }
    }

    @Test func `bytes that are no text are refused`() {
        #expect(throws: JSONError(reason: .notText, offset: 1)) { try JSON(parsing: [0x22, 0xFF, 0x22]) }
    }

    @Test func `nesting ends at 128`() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        _ = try JSON(parsing: nested(128))
        #expect(throws: JSONError(reason: .tooDeep, offset: 128)) { try JSON(parsing: nested(129)) }
    }

    @Test func `a name that comes twice is found among many, too`() {
        let members = (0..<40).map { "\"n\($0)\":\($0)" }.joined(separator: ",")
        #expect(throws: JSONError.self) { try JSON(parsing: "{\(members),\"n20\":1}") }
    }

    @Test(arguments: [0, 40]) func `two spellings of a letter are two names`(others: Int) throws {
        let members = (0..<others).map { "\"n\($0)\":\($0)," }.joined()
        let text = "{\(members)\"\u{E9}\":1,\"e\u{301}\":2}"
        let read = try JSON(parsing: text)

        #expect(read.bytes == Array(text.utf8))
        #expect(read["\u{E9}"] == 1 && read["e\u{301}"] == 2)
        #expect(throws: JSONError.self) { try JSON(parsing: "{\(members)\"e\u{301}\":1,\"e\u{301}\":2}") }
    }

    @Test func `a member keeps its place when it changes and leaves none behind when it goes`() {
        var object: JSONObject = ["a": 1, "b": 2, "c": 3]
        object["a"] = 9
        object["b"] = nil
        object["d"] = "new"
        #expect(JSON.object(object).text == #"{"a":9,"c":3,"d":"new"}"#)
    }

    @Test(arguments: [
        ("3", 3), ("3.0", 3), ("1e3", 1_000), ("-7", -7), ("3.5", nil), ("1e400", nil), ("99999999999999999999", nil),
    ])
    func `a number is whole where it is whole`(_ text: String, _ value: Int?) throws {
        #expect(try JSON(parsing: text).int == value)
    }
}
