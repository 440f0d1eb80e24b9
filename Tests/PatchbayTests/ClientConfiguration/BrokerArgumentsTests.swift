import Testing

@testable import patchbay

@Suite struct BrokerArgumentsTests {
    private static func arguments(
        socket: String? = nil,
        broker: String? = nil,
        isProject: Bool = false,
        _ environment: [String: String] = [:]
    ) throws -> BrokerArguments {
        try BrokerArguments(socket: socket, broker: broker, isProject: isProject, environment: environment)
    }

    @Test func `an option has precedence over the variables`() throws {
        let environment = ["PATCHBAY_BROKER": "lab", "PATCHBAY_SOCKET": "/run/p.sock"]
        #expect(try Self.arguments(broker: "desk", environment).arguments == ["--broker", "desk"])
        #expect(try Self.arguments(socket: "/a.sock", environment).arguments == ["--socket", "/a.sock"])
        #expect(try Self.arguments(environment).arguments == ["--broker", "lab"])
    }

    @Test func `the user's own file gets the broker of the variables`() throws {
        #expect(try Self.arguments(["PATCHBAY_SOCKET": "/run/p.sock"]).arguments == ["--socket", "/run/p.sock"])
        #expect(try Self.arguments(["PATCHBAY_SOCKET": "", "PATCHBAY_BROKER": ""]).arguments == [])
        #expect(try Self.arguments().omittedVariable == nil)
    }

    @Test func `the file of a project gets the broker of the options only`() throws {
        let shared = try Self.arguments(isProject: true, ["PATCHBAY_SOCKET": "/run/p.sock"])
        #expect(shared.arguments == [])
        #expect(shared.omittedVariable == "PATCHBAY_SOCKET")
        let named = try Self.arguments(broker: "lab", isProject: true, ["PATCHBAY_SOCKET": "/run/p.sock"])
        #expect(named.arguments == ["--broker", "lab"])
        #expect(named.omittedVariable == nil)
    }

    @Test(arguments: ["", "ssh://-oX", "lab.example", "Lab"]) func `an invalid broker is refused`(broker: String) {
        let error = #expect(throws: CLIError.self) { try Self.arguments(broker: broker) }
        #expect(error?.hint != nil)
    }

    @Test func `a socket and a broker exclude each other`() {
        #expect(throws: CLIError.self) { try Self.arguments(socket: "/a.sock", broker: "lab") }
    }
}
