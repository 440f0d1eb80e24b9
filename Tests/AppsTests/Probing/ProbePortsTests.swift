@testable import Apps
import Testing

@Suite struct ProbePortsTests {
    private static func profile(_ name: String, ports: [UInt16]) throws -> Profile {
        try Profile(
            parsing: """
                name = "\(name)"
                ports = \(ports)
                [[recognition]]
                path = "/"
                json = { type = "object" }
                [[tool]]
                name = "home"
                description = "Returns the page."
                path = "/"
                """,
            file: "\(name).toml"
        )
    }

    private let ports: ProbePorts

    init() throws {
        let profiles = [try Self.profile("one", ports: [90]), try Self.profile("two", ports: [81])]
        ports = ProbePorts([80, 81], profiles: profiles)
    }

    @Test func `the ports of profiles are probed too`() { #expect(ports.all == [80, 81, 90]) }

    @Test func `an empty list of ports disables the probes`() throws {
        #expect(ProbePorts([], profiles: [try Self.profile("one", ports: [90])]).all.isEmpty)
    }

    @Test(arguments: [(90, ["one"]), (80, ["one", "two"]), (81, ["two", "one"]), (99, [])] as [(UInt16, [String])])
    func `a profile is tried on its own ports, and on every port of the configuration`(port: UInt16, names: [String]) {
        #expect(ports.profiles(on: port).map(\.name) == names)
    }
}
