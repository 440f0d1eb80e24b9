import Model
import Testing

@Suite struct TraceContextTests {
    private static let id = "0af7651916cd43dd8448eb211c80319c"
    private static let parent = "00-\(id)-b7ad6b7169203331-01"

    @Test func `a valid context is passed on as it is`() throws {
        let context = try #require(TraceContext(parent: Self.parent, state: "rojo=00f067aa0ba902b7, a@b=c d"))

        #expect(context.parent == Self.parent && context.traceID == Self.id)
        #expect(context.headers.map(\.value) == [Self.parent, "rojo=00f067aa0ba902b7, a@b=c d"])
    }

    @Test(arguments: [
        "", "00-1", "00-\(id)-b7ad6b7169203331", "00-\(id)-b7ad6b7169203331-1", "00-\(id)-b7ad6b7169203331-01-x",
        "00-\(id)-b7ad6b7169203331-01\r\nHost: x", "00-\(String(repeating: "0", count: 32))-b7ad6b7169203331-01",
        "00-\(id)-0000000000000000-01", "ff-\(id)-b7ad6b7169203331-01", "00-\(id.uppercased())-b7ad6b7169203331-01",
        "00-\(id)-b7ad6b716920333g-01", "00_\(id)_b7ad6b7169203331_01", "01-\(id)-b7ad6b7169203331-01x",
    ])
    func `a malformed traceparent is dropped, and tracestate with it`(parent: String) {
        #expect(TraceContext(parent: parent, state: "a=1") == nil)
    }

    @Test func `a traceparent of a later version is passed on as version 00, without its unknown parts`() {
        #expect(TraceContext(parent: "cc-" + Self.parent.dropFirst(3) + "-what", state: nil)?.parent == Self.parent)
    }

    @Test func `a tracestate that is malformed or over 512 bytes is dropped, and traceparent stays`() {
        let longest = "a=" + String(repeating: "x", count: 510)
        #expect(TraceContext(parent: Self.parent, state: longest)?.state == longest)
        let many = (0..<33).map { "k\($0)=1" }.joined(separator: ",")
        for state in [longest + "x", "", "a", "a=", "=1", "a=b=c", "a=1\r\nb: 2", "ä=1", "a=ü", ",", many] {
            let context = TraceContext(parent: Self.parent, state: state)
            #expect(context?.parent == Self.parent && context?.state == nil, "\(state)")
        }
    }

    @Test func `repeated headers are one list for tracestate, and none for traceparent`() {
        func context(_ parents: [String], _ states: [String]) -> TraceContext? {
            TraceContext { ["traceparent": parents, "tracestate": states][$0] ?? [] }
        }

        #expect(context([Self.parent], ["a=1", "b=2"])?.state == "a=1,b=2")
        #expect(context([Self.parent, Self.parent], ["a=1"]) == nil)
        #expect(context([], ["a=1"]) == nil)
    }
}
