import Apps
import Model
import Testing

/// Servers that list their own functions.
@Suite struct FunctionListTests {
    private static let file = """
        name = "functions"
        ports = [27193]

        [authentication]
        type = "bearer"

        [[recognition]]
        path = "/functions"
        status = 401
        json = { type = "object", required = ["error"] }

        [functions]
        list = { path = "/functions" }
        pointer = "/functions"
        call = { method = "POST", path = "/call", body = '{"name": "{function}", "arguments": "{arguments}"}' }
        """
    private static let list = AppResponse.json(
        """
        {"functions":[{"name":"reset","description":"Resets\\u0007 the app.","parameters":{"type":"object","properties":\
        {"hard":{"type":"boolean"}}}},{"name":"../x"},{"name":"reset"},{"name":"ping"},{}]}
        """
    )

    private let profile: Profile
    private let functions: FunctionListTemplate
    private var authentication: ProfileAuthentication

    init() throws {
        profile = try Profile(parsing: Self.file, file: "functions.toml")
        functions = try #require(profile.functions)
        authentication = ProfileAuthentication(profile, newToken: ExchangeToken("unused"))
    }

    @Test func `the list is requested with the token`() {
        #expect(functions.request(with: authentication)?.description == "GET /functions")
        #expect(
            functions.request(with: authentication)?.text(secret: "T").contains("Authorization: Bearer T\r\n") == true
        )
    }

    @Test func `each function with a valid name becomes a tool with its own schema`() throws {
        let tools = try functions.tools(in: Self.list)

        #expect(tools.map(\.name) == ["reset", "ping"])
        #expect(tools[0].description == "Resets\u{FFFD} the app.")
        #expect(tools[0].json["inputSchema"]?["properties"]?.text == #"{"hard":{"type":"boolean"}}"#)
        #expect(tools[1].json["inputSchema"]?.text == #"{"type":"object"}"#)
    }

    @Test func `a call names the function and forwards the arguments`() throws {
        let tools = try functions.tools(in: Self.list)
        let tool = try profile.tool(named: "reset", functions: tools)
        let request = try profile.request(
            for: tool,
            arguments: ["hard": true, "{x}": "{function}"],
            with: authentication
        )

        #expect(
            request.text().hasSuffix(#"{"name":"reset","arguments":{"hard":true,"{x}":"{function}"}}"#)
        )
        #expect(request.description == "POST /call")
    }

    @Test func `a function cannot replace a tool of the profile`() throws {
        let own = try ShippedProfile.load("app-debug")
        let list = AppResponse.json(#"{"functions":[{"name":"screenshot"},{"name":"reset"}]}"#)
        let functions = try functions.tools(in: list)

        #expect(own.allTools(with: functions).map(\.name) == own.tools.map(\.name) + ["reset"])
        #expect(try own.tool(named: "screenshot", functions: functions).isReadOnly)
    }

    @Test func `a function that the server does not list cannot be called`() throws {
        let tools = try functions.tools(in: Self.list)

        #expect {
            _ = try profile.tool(named: "resett", functions: tools)
        } throws: { "\($0)" == "there is no tool \"resett\": functions does not have it; did you mean \"reset\"?" }
    }

    @Test(arguments: [("{}", 200), ("[", 200), (#"{"error":"x"}"#, 401)])
    func `a response without a list is an error`(body: String, status: Int) {
        #expect {
            _ = try functions.tools(in: .json(body, status: status))
        } throws: { "\($0)" == "it answers with status \(status) and no list of functions at \"/functions\"" }
    }

    @Test mutating func `a rejected token is reported`() throws {
        let tool = try functions.tools(in: Self.list)[0]

        #expect(authentication.nextStep(for: tool, hasSecret: false) == .failed(.secretRequired))
        #expect(authentication.nextStep(for: tool, hasSecret: true) == .ready)
        #expect(authentication.finish(.json("{}", status: 401), of: tool, at: .zero) == .failed(.secretRejected))
    }

    @Test func `at most 200 functions become tools`() throws {
        let names = (0..<300).map { #"{"name":"f\#($0)"}"# }.joined(separator: ",")

        #expect(try functions.tools(in: .json(#"{"functions":[\#(names)]}"#)).count == 200)
    }
}
