import Model
import Testing

@testable import Apps

@Suite struct ServiceProbeTests {
    private func answer(_ text: String, status: Int = 200) -> AppResponse {
        AppResponse(status: status, contentType: nil, body: Array(text.utf8))
    }

    @Test(arguments: [
        #"{"status":"ok","port":4000,"auth":"session-token","bonjour":"advertised","lan":{"warnings":[]}}"#,
        #"{"status":"ok","port":4000,"auth":"session-token","discovery":"nsd"}"#,
        #"{"status":"ok","port":4000,"bonjour":"suppressed"}"#,
    ])
    func `the health of every AppReveal version is recognised`(body: String) {
        #expect(ServiceProbe.appReveal(answer(body)) != nil)
    }

    @Test(arguments: [
        #"{"status":"ok"}"#, #"{"status":"ok","port":1}"#, "OK", "", "[]", #"{"status":1,"port":2,"auth":"x"}"#,
    ])
    func `another server's health is not AppReveal's`(body: String) {
        #expect(ServiceProbe.appReveal(answer(body)) == nil)
    }

    @Test func `an error response identifies nothing`() {
        #expect(ServiceProbe.appReveal(answer(#"{"status":"ok","port":4000,"auth":"x"}"#, status: 404)) == nil)
    }

    @Test func `an initialize result gives the server's name, sanitized`() {
        let reply =
            #"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"#
            + #""serverInfo":{"name":"evil\u001b[2J","version":"1.0"}}}"#

        let service = ServiceProbe.server(answer(reply))

        #expect(service?.kind == .mcp)
        #expect(service?.name?.text == "evil\u{FFFD}[2J")
    }

    @Test func `AppReveal is identified by its MCP server name, too`() {
        let reply =
            #"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"AppReveal"}}}"#

        #expect(ServiceProbe.server(answer(reply))?.kind == .appreveal)
    }

    @Test func `launch_context gives the bundle ID and the device's name`() {
        let reply =
            #"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"#
            + #""{\"bundleId\":\"com.example.shop\",\"version\":\"3.2.0\",\"deviceName\":\"iPhone\"}"}]}}"#

        let app = ServiceProbe.app(answer(reply))

        #expect(app?.app?.text == "com.example.shop")
        #expect(app?.version?.text == "3.2.0")
        #expect(app?.device?.text == "iPhone")
    }

    @Test func `an unauthorized launch_context gives nothing`() {
        let reply = #"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Unauthorized"}}"#

        #expect(ServiceProbe.app(answer(reply, status: 401)) == nil)
        #expect(ServiceProbe.server(answer(reply, status: 401)) == nil)
    }
}
