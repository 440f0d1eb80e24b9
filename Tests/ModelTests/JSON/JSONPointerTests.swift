import Model
import Testing

@Suite struct JSONPointerTests {
    /// The document and the pointers of RFC 6901, section 5.
    private static let document: JSON = [
        "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "m~n": 8, "e": ["0": ["f": true]],
    ]

    @Test(
        arguments: [
            ("/foo", ["bar", "baz"]), ("/foo/0", "bar"), ("/", 0), ("/a~1b", 1), ("/c%d", 2), ("/m~0n", 8),
            ("/e/0/f", true),
        ] as [(String, JSON)]
    )
    func `a pointer finds its value and is printed unchanged`(text: String, value: JSON) throws {
        let pointer = try #require(JSONPointer(text))

        #expect(pointer.value(in: Self.document) == value)
        #expect(pointer.description == text)
    }

    @Test func `the empty pointer is the document`() throws {
        #expect(try #require(JSONPointer("")).value(in: Self.document) == Self.document)
        #expect(JSONPointer.root.description == "")
    }

    @Test(arguments: ["/foo/2", "/foo/-", "/foo/00", "/foo/-1", "/foo/+1", "/x", "/foo/0/x", "/e/0/f/x"])
    func `a pointer to nothing finds nothing`(text: String) throws {
        #expect(try #require(JSONPointer(text)).value(in: Self.document) == nil)
    }

    @Test(arguments: ["foo", "#/foo", "/~", "/~2", "/a~"]) func `invalid text is no pointer`(text: String) {
        #expect(JSONPointer(text) == nil)
    }

    @Test func `an appended name is escaped`() {
        #expect(JSONPointer.root.appending("a/b").appending("~1").description == "/a~1b/~01")
    }
}
