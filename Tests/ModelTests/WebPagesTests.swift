import Model
import Testing

@Suite struct WebPagesTests {
    private func pages(_ text: String, at authority: String? = "127.0.0.1:9333") throws -> WebPages? {
        DevToolsPages(try JSON(parsing: text)).map { WebPages($0, at: authority) }
    }

    @Test func `the URL of a page has the address of the tunnel`() throws {
        let list = try pages(
            #"[{"type":"page","title":"Shop","url":"https://a.test/","webSocketDebuggerUrl":"ws://10.0.0.1:1/devtools/page/A"}]"#
        )

        #expect(list?.http == "http://127.0.0.1:9333")
        #expect(list?.pages.first?.title.text == "Shop")
        #expect(list?.pages.first?.webSocketDebuggerUrl == "ws://127.0.0.1:9333/devtools/page/A")
    }

    @Test func `the scheme of Metro behind TLS becomes that of its own port`() throws {
        let list = try pages(#"[{"webSocketDebuggerUrl":"wss://metro.test/inspector/debug?device=1&page=2"}]"#)

        #expect(list?.pages.first?.webSocketDebuggerUrl == "ws://127.0.0.1:9333/inspector/debug?device=1&page=2")
    }

    @Test func `a page has no WebSocket URL without an address`() throws {
        let list = try pages(#"[{"webSocketDebuggerUrl":"ws://localhost:1/A"}]"#, at: nil)

        #expect(list?.http == nil && list?.pages.first?.webSocketDebuggerUrl == nil)
    }

    @Test func `a damaged entry is lost alone, and a member of a wrong type is empty`() throws {
        let list = try pages(#"[1,null,[],{"title":7,"url":{},"type":"node"}]"#)

        #expect(list?.pages.map(\.type.text) == ["node"])
        #expect(list?.pages.first?.title.text == "" && list?.omittedCount == 3)
    }

    @Test func `titles are sanitized, and a URL with other characters is no WebSocket URL`() throws {
        let list = try pages(#"[{"title":"a\u001b[2J","webSocketDebuggerUrl":"ws://h/\u001b[2J"}]"#)

        #expect(list?.pages.first?.title.text == "a\u{FFFD}[2J")
        #expect(list?.pages.first?.webSocketDebuggerUrl == nil)
    }

    @Test func `an object is no list, and pages beyond the limit are counted`() throws {
        let many = "[" + Array(repeating: "{}", count: DevToolsPages.pageLimit + 5).joined(separator: ",") + "]"

        #expect(try pages("{}") == nil)
        #expect(try pages(many)?.omittedCount == 5)
    }
}
