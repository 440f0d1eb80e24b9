import ArgumentParser
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
    func `a mapping to a phone is parsed in every notation`(text: String, local: ListenAddress, remote: UInt16) throws {
        let argument = try PortMapping(toDevice: text, source: nil)

        #expect(argument.local == local)
        #expect(argument.remote == .port(remote))
    }

    @Test func `a mapping may lead to an abstract socket`() throws {
        let name = try #require(AbstractSocketName("a-b"))
        for text in ["8080:localabstract:a-b", "unix:/tmp/x:localabstract:a-b"] {
            #expect(try PortMapping(toDevice: text, source: nil).remote == .abstract(name))
            #expect(try PortRange.expand(text) == [text])
        }
        for text in ["8080:localabstract:", "8080:localabstract:a:b", "localabstract:a"] {
            #expect(throws: CLIError.self) { try PortMapping(toDevice: text, source: nil) }
        }
    }

    @Test(arguments: [
        (["tcp:7777", "tcp:9876"], ["tcp:7777:9876"]), (["tcp:0", "localabstract:x"], ["tcp:0:localabstract:x"]),
        (["localfilesystem:/tmp/x", "tcp:1"], ["unix:/tmp/x:1"]),
        // Words of Patchbay, one of them not alone, and `tcp:PORT:HOST`, by which a phone would connect elsewhere.
        (["1:2", "3:4"], ["1:2", "3:4"]), (["tcp:7777"], ["tcp:7777"]),
        (["tcp:0:1", "tcp:0:2"], ["tcp:0:1", "tcp:0:2"]),
        (["tcp:1", "tcp:2:host"], ["tcp:1", "tcp:2:host"]),
    ])
    func `the two words of adb are one mapping`(words: [String], pairs: [String]) {
        #expect(PortMapping.joinADBWords(words) == pairs)
    }

    @Test(arguments: [
        "", ":", "0", "70000", "8080:", ":9876", "8080:0", "8080:70000", "x:22", "1:2:3", "::1:8080:22", "unix:/tmp/x",
        "unix:relative:22", "tcp:22", "+1", "8080:+22", "8080:-1",
    ])
    func `an invalid mapping to a phone is rejected with an example`(text: String) {
        let error = #expect(throws: CLIError.self) { try PortMapping(toDevice: text, source: nil) }

        #expect(error?.status == .usage)
        #expect(error?.hint?.contains(":") == true)
    }

    @Test(arguments: [
        (nil, ListenAddress.tcp(host: nil, port: 0)), ("8080", .tcp(host: nil, port: 8080)),
        ("tcp:0", .tcp(host: nil, port: 0)), ("[::1]:80", .tcp(host: "::1", port: 80)),
        ("unix:/tmp/x", .unix(path: "/tmp/x")),
    ])
    func `a mapping to an endpoint is a local address or a free port`(text: String?, local: ListenAddress) throws {
        let argument = try PortMapping(toEndpoint: text, source: nil)

        #expect(argument.local == local)
        #expect(argument.remote == nil)
    }

    @Test func `a mapping to an endpoint with a phone port is rejected`() {
        let error = #expect(throws: CLIError.self) {
            try PortMapping(toEndpoint: "8080:9876", source: nil, endpoint: "shop")
        }
        #expect(error?.message == "an endpoint has its own port, so \"8080:9876\" has one too many")
        #expect(error?.hint == "patchbay forward 8080 --endpoint shop")
    }

    @Test func `the source address applies to mappings without an address`() throws {
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
    func `a port range expands into one mapping per port`(text: String, pairs: [String]) throws {
        #expect(try PortRange.expand(text) == pairs)
    }

    @Test(arguments: ["8000-8002:9000-9001", "8000:9000-9001", "1-65535", "x:1-2"])
    func `ranges of different lengths are rejected with an example`(text: String) {
        let error = #expect(throws: CLIError.self) { try PortRange.expand(text) }

        #expect(error?.status == .usage)
        #expect(error?.hint?.isEmpty == false)
    }

    @Test(arguments: [
        ("unix:/\(String(repeating: "x", count: 107)):22", "has 108 bytes; the path of a Unix socket has at most 107"),
        ("unix:x.sock:22", "is not an absolute path"), ("70000:22", "\"70000\" is not a local port, 0 to 65535"),
        ("::1:8080:22", "is an IPv6 address without brackets"), ("example.com:7000:22", "use a numeric address"),
        ("tcp:-1:22", "\"-1\" is not a local port"),
    ])
    func `the error names the fault of a local address`(text: String, what: String) {
        let error = #expect(throws: CLIError.self) { try PortMapping(toDevice: text, source: nil) }

        #expect(error?.message.contains(what) == true, "\(error?.message ?? "")")
    }

    @Test(arguments: ["0", "70000", "-1", "http"])
    func `an invalid port is rejected with the range of ports`(text: String) {
        for arguments in [["advertise", "Shop", "_http._tcp", "--", text], ["approve", "shop", "--port=\(text)"]] {
            let error = #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(arguments) }
            #expect(error.map { Patchbay.message(for: $0) }?.contains("Enter a port from 1 to 65535.") == true)
        }
    }

    @Test func `a negative port is rejected as a port`() {
        let error = #expect(throws: CLIError.self) { try PortMapping.refuseNegative(["forward", "-1:9876"]) }

        #expect(error?.message == "\"-1:9876\" does not start with a port, 0 to 65535")
        #expect(throws: Never.self) { try PortMapping.refuseNegative(["forward", "1:2", "-d", "x"]) }
    }
}
