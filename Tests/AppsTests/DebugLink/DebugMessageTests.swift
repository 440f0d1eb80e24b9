import Model
import Testing

@testable import Apps

@Suite struct DebugMessageTests {
    private static func message(_ text: String) throws -> DebugMessage { try DebugMessage(parsing: Array(text.utf8)) }

    @Test(arguments: [
        #"{"a":[1,{"b":"}]"}], "c" : "\\\"" }"#, "[1, 2]", #""text \" }""#, "-1.50", "null", "true", "{}",
    ]) func `the state keeps its bytes`(_ state: String) throws {
        for text in [
            #"{"state":\#(state),"action":"tap"}"#, #" { "action" : "tap" , "state" : \#(state) , "more": [] } "#,
        ] {
            let message = try Self.message(text)
            #expect(String(decoding: message.state, as: UTF8.self) == state)
            #expect(message.action?.text == "tap")
            #expect(message.pictureSize == nil)
        }
    }

    @Test(arguments: ["imageData", "png"])
    func `a picture is decoded from base64 with escaped slashes`(name: String) throws {
        let message = try Self.message(#"{"state":1,"\#(name)":"\/9j\/AA=="}"#)

        #expect(message.picture() == [0xFF, 0xD8, 0xFF, 0])
        #expect(message.pictureSize == 12)
    }

    @Test(arguments: ["%%%", "/9j/A", "/9j/AA==AAAA", "\\u00", "R0lGODlh", "\\/9j"])
    func `something else than a PNG or JPEG file in base64 is dropped, and the state is kept`(text: String) throws {
        let message = try Self.message(#"{"state":[1],"action":"tap","imageData":"\#(text)"}"#)

        #expect(message.hasInvalidPicture)
        #expect(message.pictureSize == nil)
        #expect(message.size == 3)
        #expect(message.state == Array("[1]".utf8)[...])
    }

    @Test(arguments: ["null", "\"\""])
    func `a message without action and picture is accepted`(picture: String) throws {
        let message = try Self.message(#"{"state":1,"action":null,"imageData":\#(picture)}"#)

        #expect(message.action == nil)
        #expect(message.pictureSize == nil)
    }

    @Test func `an action is made safe to print`() throws {
        #expect(try Self.message(#"{"state":1,"action":"a\u001bb"}"#).action?.text == "a\u{FFFD}b")
        #expect(try Self.message(#"{"state":1,"action":{"tap":1}}"#).action?.text == #"{"tap":1}"#)
        let long = String(repeating: "x", count: 5_000)
        #expect(try Self.message(#"{"state":1,"action":"\#(long)"}"#).action?.text.utf8.count == 1_000)
    }

    @Test func `without its picture a message needs the memory of its state`() throws {
        var message = try Self.message(#"{"imageData":"/9j/AAAA","state":{"a":1},"action":"tap"}"#)

        message.dropPicture()

        #expect(message.size == 7)
        #expect(message.state == Array(#"{"a":1}"#.utf8)[...])
        #expect(message.action?.text == "tap")
        #expect(message.picture() == nil)
    }

    @Test(arguments: [
        "[]", "1", "{", #"{"state"}"#, #"{"state":}"#, #"{"state":1"#, #"{"state":[1}"#, #"{"state":"1}"#,
        #"{"state":"\"}"#, #"{"state":1} 2"#, #"{"state":1,}"#, #"{state:1}"#, " ",
        "{\((0...64).map { "\"m\($0)\":0" }.joined(separator: ",")),\"state\":1}",
    ]) func `content that is not one short object is refused`(_ text: String) {
        #expect(throws: DebugLinkError.invalidMessage("it is not one JSON object")) { try Self.message(text) }
    }

    @Test func `a message without a state is refused`() {
        #expect(throws: DebugLinkError.invalidMessage(#"it has no member "state""#)) {
            try Self.message(#"{"action":"tap"}"#)
        }
    }
}
