import FoundationEssentials
import Model
import Testing

@testable import patchbayd

@Suite struct ConfigurationTests {
    private func parse(_ text: String) throws -> Configuration {
        try Configuration.parse(text, file: "patchbay.toml")
    }

    private func complaint(_ text: String) -> String {
        do {
            _ = try parse(text)
            return "no complaint"
        } catch {
            return "\(error)"
        }
    }

    private static let example = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "config/patchbay.example.toml").path

    @Test func `an empty file is every default`() throws {
        #expect(try parse("") == Configuration())
    }

    @Test func `the example says exactly the defaults`() throws {
        let text = try #require(FileManager.default.contents(atPath: Self.example))

        #expect(try parse(String(decoding: text, as: UTF8.self)) == Configuration())
    }

    @Test func `the example's commented keys are keys, every one of them`() throws {
        let text = String(decoding: try #require(FileManager.default.contents(atPath: Self.example)), as: UTF8.self)
        let uncommented = text.split(separator: "\n").map { line in
            let rest = line.drop { $0 == "#" || $0 == " " }
            return line.hasPrefix("# ") && (rest.contains(" = ") || rest.hasPrefix("[[")) ? String(rest) : String(line)
        }

        let configuration = try parse(uncommented.joined(separator: "\n"))

        #expect(configuration.broker.socket == "/run/patchbay/patchbay.sock")
        #expect(configuration.broker.stateDirectory == "/var/lib/patchbay")
        #expect(configuration.devices.usbmuxd == "/var/run/usbmuxd")
        #expect(configuration.devices.facade == "unix:/run/patchbay/tunnels/usbmuxd")
        #expect(configuration.endpoints.map(\.name) == ["staging"])
    }

    @Test func `an unknown key is named with its table`() {
        #expect(complaint("[tunnels]\nmax_conections = 3").contains("tunnels.max_conections"))
    }

    @Test func `a syntax error is named with line and column`() {
        #expect(complaint("[broker]\nlog_level = ").contains("line 2, column"))
    }

    @Test(arguments: [
        ("[devices]\nprobe_ports = \"9876\"", "probe_ports"),
        ("[devices]\nprobe_ports = [70000]", "probe_ports"),
        ("[devices]\nprobe_ports = [0]", "probe_ports"),
        ("[devices]\nclient = \"usb\"", "client"),
        ("[discovery]\ntypes = [\"appreveal\"]", "service type"),
        ("[discovery]\nenabled = \"yes\"", "enabled"),
        ("[[endpoint]]\nname = \"x\"\nkind = \"mcp\"\naddress = \"127.0.0.1\"\nport = 99999999", "99999999 is no port"),
        ("[tunnels]\nmax_connections = 0", "max_connections"), ("[devices]\nmax_streams = 0", "max_streams"),
        ("[broker]\nlog_level = \"loud\"", "log_level"),
        ("[[endpoint]]\nname = \"x\"\nkind = \"mcp\"\naddress = \"example.com\"\nport = 1", "numeric"),
    ])
    func `a wrong value is named by its key`(text: String, name: String) {
        #expect(complaint(text).contains(name), "\(complaint(text))")
        #expect(complaint(text).contains("patchbay.toml"))
    }

    @Test func `a file that was named and is not there is an error`() {
        #expect(throws: ConfigurationError.unreadable(file: "/nowhere/patchbay.toml")) {
            try Configuration.load(explicit: "/nowhere/patchbay.toml", environment: [:])
        }
    }

    @Test func `no file at all is every default`() throws {
        #expect(try Configuration.load(explicit: nil, environment: ["HOME": "/nowhere"]).file == nil)
    }
}
