import Model
import Testing

@testable import Apps

@Suite struct StateDiffTests {
    private static func lines(_ before: String, _ after: String) throws -> [String] {
        try StateDiff(from: JSON(parsing: before), to: JSON(parsing: after)).changes.map { change in
            "\(change.pointer) \(change.before ?? "-") \(change.after ?? "-")"
        }
    }

    @Test func `a diff lists changed, added and removed values with their pointers`() throws {
        let before = #"{"user":{"name":"A","age":1},"items":[1,2,3],"old":true,"a/b":0}"#
        let after = #"{"items":[1,5],"user":{"age":1,"name":"B"},"new":[null],"a/b":1}"#

        #expect(
            try Self.lines(before, after) == [
                "/items/1 2 5", "/items/2 3 -", #"/user/name "A" "B""#, "/new - [null]", "/a~1b 0 1", "/old true -",
            ]
        )
    }

    @Test(arguments: [("1", "2", [" 1 2"]), ("{}", "[]", [" {} []"]), ("[]", "[0]", ["/0 - 0"]), ("{}", "{}", [])])
    func `a value of another type is one change`(before: String, after: String, changes: [String]) throws {
        #expect(try Self.lines(before, after) == changes)
    }

    @Test func `the number and the size of the changes are limited`() throws {
        let long = JSON.string(String(repeating: "x", count: 1_000))
        let diff = StateDiff(
            from: .array(Array(repeating: 1, count: 10)),
            to: .array(Array(repeating: long, count: 10)),
            changeLimit: 3,
            valueLimit: 20
        )

        #expect(diff.changes.count == 3)
        #expect(diff.omittedChanges == 7)
        #expect(diff.changes.first?.after == "\"\(String(repeating: "x", count: 19))…")
        #expect(diff.changes.first?.before == "1")
    }
}

@Suite struct StateShapeTests {
    private static func difference(_ state: String, from last: String) throws -> String? {
        try StateShape(of: JSON(parsing: state)).difference(from: StateShape(of: JSON(parsing: last)))
    }

    @Test func `states with the same members and types have no difference`() throws {
        #expect(try Self.difference(#"{"a":1,"b":true,"c":{"x":1}}"#, from: #"{"c":{"y":2},"b":false,"a":2.5}"#) == nil)
        #expect(try Self.difference("[1]", from: "[]") == nil)
    }

    @Test(arguments: [
        (#"{"a":"1"}"#, #"{"a":1}"#, #""/a" is a text, and a number in the app's last state"#),
        (#"{"a":null}"#, #"{"a":1}"#, #""/a" is null, and a number in the app's last state"#),
        (#"{"a":1,"b":1}"#, #"{"a":1}"#, #""/b" is missing in the app's last state"#),
        (#"{"a":1}"#, #"{"a":1,"b":1}"#, #""/b" is missing in it, and the app's last state has it"#),
        ("[]", "{}", "it is a list, and the app's last state is an object"),
    ]) func `another shape is described`(state: String, last: String, difference: String) throws {
        #expect(try Self.difference(state, from: last) == difference)
    }
}
