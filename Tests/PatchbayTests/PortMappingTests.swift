import Model
import Testing

@testable import patchbay

@Suite struct PortMappingTests {
    @Test(arguments: [
        ("9876", ListenAddress.tcp(host: nil, port: 9876), 9876), ("8080:9876", .tcp(host: nil, port: 8080), 9876),
        ("0:22", .tcp(host: nil, port: 0), 22), ("tcp:0:22", .tcp(host: nil, port: 0), 22),
        ("127.0.0.1:8080:22", .tcp(host: "127.0.0.1", port: 8080), 22),
        ("tcp:localhost:8080:22", .tcp(host: "localhost", port: 8080), 22),
        ("[::1]:8080:22", .tcp(host: "::1", port: 8080), 22), ("tcp:[::1]:0:22", .tcp(host: "::1", port: 0), 22),
        ("unix:/tmp/shop.sock:22", .unix(path: "/tmp/shop.sock"), 22),
        ("unix:/tmp/a:b:22", .unix(path: "/tmp/a:b"), 22),
    ])
    func `a pair to a phone is read in every notation`(text: String, local: ListenAddress, remote: UInt16) throws {
        let argument = try PortMapping(toDevice: text, source: nil)

        #expect(argument.local == local)
        #expect(argument.remote == remote)
    }

    @Test(arguments: [
        "", ":", "0", "70000", "8080:", ":9876", "8080:0", "8080:70000", "x:22", "1:2:3", "::1:8080:22", "unix:/tmp/x",
        "unix:relative:22", "tcp:22", "+1", "8080:+22", "8080:-1",
    ])
    func `anything else to a phone is refused with an example`(text: String) {
        let complaint = #expect(throws: CLIError.self) { try PortMapping(toDevice: text, source: nil) }

        #expect(complaint?.status == .usage)
        #expect(complaint?.remedy?.contains(":") == true)
    }

    @Test(arguments: [
        (nil, ListenAddress.tcp(host: nil, port: 0)), ("8080", .tcp(host: nil, port: 8080)),
        ("tcp:0", .tcp(host: nil, port: 0)), ("[::1]:80", .tcp(host: "::1", port: 80)),
        ("unix:/tmp/x", .unix(path: "/tmp/x")),
    ])
    func `an endpoint takes a local address alone, or any free port`(text: String?, local: ListenAddress) throws {
        let argument = try PortMapping(toEndpoint: text, source: nil)

        #expect(argument.local == local)
        #expect(argument.remote == nil)
    }

    @Test func `a phone's port given to an endpoint is noticed`() {
        #expect(throws: CLIError.self) { try PortMapping(toEndpoint: "8080:9876", source: nil) }
    }

    @Test func `the source address stands where no other is named`() throws {
        #expect(try PortMapping(toDevice: "80:22", source: "::1").local == .tcp(host: "::1", port: 80))
        #expect(try PortMapping(toDevice: "22", source: "::1").local == .tcp(host: "::1", port: 22))
        #expect(try PortMapping(toEndpoint: nil, source: "::1").local == .tcp(host: "::1", port: 0))
        #expect(throws: CLIError.self) { try PortMapping(toDevice: "127.0.0.1:80:22", source: "::1") }
        #expect(throws: CLIError.self) { try PortMapping(toDevice: "unix:/x:22", source: "::1") }
    }

    @Test(arguments: [
        ("9000-9002", ["9000", "9001", "9002"]), ("0:9000-9001", ["0:9000", "0:9001"]),
        ("8000-8001:9000-9001", ["8000:9000", "8001:9001"]),
        ("tcp:[::1]:8000-8001:22-23", ["tcp:[::1]:8000:22", "tcp:[::1]:8001:23"]),
        ("tcp:0:7-8", ["tcp:0:7", "tcp:0:8"]),
        ("8080:9876", ["8080:9876"]), ("7-7", ["7"]), ("unix:/tmp/1-2:3-4", ["unix:/tmp/1-2:3-4"]), ("9-7", ["9-7"]),
    ])
    func `a range of ports is a pair for each`(text: String, pairs: [String]) throws {
        #expect(try PortRange.expand(text) == pairs)
    }

    @Test(arguments: ["8000-8002:9000-9001", "8000:9000-9001", "1-65535", "x:1-2"])
    func `ranges that do not fit each other are refused with an example`(text: String) {
        let complaint = #expect(throws: CLIError.self) { try PortRange.expand(text) }

        #expect(complaint?.status == .usage)
        #expect(complaint?.remedy?.isEmpty == false)
    }

    @Test(arguments: [
        ("unix:/\(String(repeating: "x", count: 107)):22", "has 108 bytes, and the path of a unix socket at most 107"),
        ("unix:x.sock:22", "is not an absolute path"), ("70000:22", "\"70000\" is no local port, 0 to 65535"),
        ("::1:8080:22", "is an IPv6 address without brackets"), ("example.com:7000:22", "it must be numeric"),
        ("tcp:-1:22", "\"-1\" is no local port"),
    ])
    func `what is wrong with a local address is said`(text: String, what: String) {
        let complaint = #expect(throws: CLIError.self) { try PortMapping(toDevice: text, source: nil) }

        #expect(complaint?.message.contains(what) == true, "\(complaint?.message ?? "")")
    }

    @Test func `a negative port is no option`() {
        let complaint = #expect(throws: CLIError.self) { try PortMapping.refuseNegative(["forward", "-1:9876"]) }

        #expect(complaint?.message == "\"-1:9876\" begins with no port, 0 to 65535")
        #expect(throws: Never.self) { try PortMapping.refuseNegative(["forward", "1:2", "-d", "x"]) }
    }
}
