import FoundationEssentials
import Glibc
import Model
import SystemIO
import TOML
import Team
import TestSupport
import Testing

@testable import patchbayd

@Suite(.scratchFolder) struct ConfigurationTests {
    private let scratch = ScratchFolder.current

    private func parse(_ text: String) throws -> Configuration {
        let table = TOMLTable(try TOMLDocument(parsing: text, file: "patchbay.toml"))
        var errors = TOMLErrorCollector()
        let context = ConfigurationContext(environment: [:], profileKinds: [.appDebug])
        let configuration = Configuration(table, in: context, errors: &errors)
        if let error = TOMLError.joining(errors.errors) { throw error }
        return configuration
    }

    private func errorMessage(_ text: String) -> String {
        do {
            _ = try parse(text)
            return "no error"
        } catch { return "\(error)" }
    }

    private static let example = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "config/patchbay.example.toml").path

    @Test func `an empty file gives the default configuration`() throws { #expect(try parse("") == Configuration()) }

    @Test func `the example file is made from the table of keys, and equals the default configuration`() throws {
        let data = try #require(FileManager.default.contents(atPath: Self.example))
        let text = String(decoding: data, as: UTF8.self)

        #expect(text == ConfigurationExample.text, "make example")
        #expect(try parse(text) == Configuration())
    }

    @Test func `every commented key of the example file is valid`() throws {
        let text = String(decoding: try #require(FileManager.default.contents(atPath: Self.example)), as: UTF8.self)
        let uncommented = text.split(separator: "\n").map { line in
            let rest = line.drop { $0 == "#" || $0 == " " }
            return line.hasPrefix("# ") && (rest.contains(" = ") || rest.hasPrefix("[[")) ? String(rest) : String(line)
        }

        // The user must exist.
        let configuration = try parse(uncommented.joined(separator: "\n").replacing("anna", with: "root"))

        #expect(configuration.audit.maxAge == DurationText("365d"))
        #expect(configuration.audit.maxSize == ByteCountText("1GB"))
        #expect(configuration.api.remote?.port == 7_283)
        let names = uncommented.reduce(into: (table: "", keys: [String]())) { state, line in
            if line.hasPrefix("[") {
                state.table = String(line.filter { $0 != "[" && $0 != "]" })
                if state.table == "endpoint" { state.keys.append("endpoint") }
            } else if let equals = line.firstRange(of: " = "), state.table != "endpoint" {
                state.keys.append("\(state.table).\(line[..<equals.lowerBound])")
            }
        }
        #expect(names.keys == ConfigurationKey.all.map(\.name))
        #expect(configuration.broker.socket == "/run/patchbay/patchbay.sock")
        #expect(configuration.broker.stateDirectory == "/var/lib/patchbay")
        #expect(configuration.devices.usbmuxd == "/var/run/usbmuxd")
        #expect(configuration.devices.serveUsbmuxd == "unix:/run/patchbay/tunnels/usbmuxd")
        #expect(configuration.endpoints.map(\.name) == ["staging"])
        #expect(configuration.discovery.readvertiseUser == "root")
        #expect(configuration.debugLink.name == "patchbay-desk")
        #expect(configuration.debugLink.forward == "Anna’s MacBook")
        #expect(configuration.team.etcd == ["https://10.0.0.5:2379"])
        #expect(configuration.team.host?.text == "lab1")
        #expect(configuration.team.addresses.map(\.description) == ["lab1.example.com", "10.0.0.7:7284"])
    }

    @Test(arguments: [
        ("10.0.0.7", "10.0.0.7:7284"), ("10.0.0.7:99", "10.0.0.7:99"), ("lab1", "lab1:7284"),
        ("fd00::7", "[fd00::7]:7284"), ("[fd00::7]", "[fd00::7]:7284"), ("[fd00::7]:99", "[fd00::7]:99"),
    ])
    func `an address of a team has the port of its listener, unless it names another one`(
        text: String,
        dialled: String
    ) throws { #expect(try #require(TeamAddress(text)).description(defaultPort: 7_284) == dialled) }

    @Test(arguments: ["", ":7284", "a b", "10.0.0.7:0", "10.0.0.7:x", "[fd00::7", "10.0.0.7:70000"])
    func `any other text is no address of a team`(text: String) { #expect(TeamAddress(text) == nil) }

    @Test(arguments: [
        (
            "[broker]\n\n[tunnels]\nmax_conections = 3",
            "4:1: tunnels.max_conections: there is no such key; did you mean \"max_connections\"?"
        ),
        (
            "[broker]\nallow_any = true",
            "2:1: broker.allow_any: there is no such key; the keys are socket, state_directory, log_level; "
                + "another table has api.allow_any_user"
        ),
        ("[tunnel]\n", "1:1: tunnel: there is no such key; did you mean \"tunnels\"?"),
        (
            "[debuglink]\nport = 1",
            "2:1: debuglink.port: there is no such key; the keys are enabled, listen, name, forward; "
                + "another table has api.port"
        ),
        (
            "[[endpoint]]\nname = \"x\"\naddress = \"::1\"\nport = 1\nprot = 2",
            "5:1: [[endpoint]] number 1: prot: there is no such key; did you mean \"port\"?"
        ),
    ]) func `the error for an unknown key has its line and the nearest key`(text: String, message: String) {
        #expect(errorMessage(text) == "patchbay.toml:\(message)")
    }

    @Test func `one run reports every error, in the order of the file`() throws {
        let text = """
            [broker]
            log_level = "loud"
            sokcet = "/x"
            [api]
            port = 70000
            tpc = true
            [discovery]
            types = ["x", "_mcp._tcp", "y"]
            [[endpoint]]
            name = 3
            kind = "aprevel"
            host = "::1"
            [tunnel]
            """

        let lines = errorMessage(text).split(separator: "\n").map { $0.dropFirst("patchbay.toml:".count) }

        #expect(
            lines == [
                "2:1: broker.log_level must be one of trace, debug, info, notice, warning, error, critical, but is \"loud\"",
                "3:1: broker.sokcet: there is no such key; did you mean \"socket\"?",
                "5:1: api.port must be a number from 1 to 65535, but is 70000",
                "6:1: api.tpc: there is no such key; did you mean \"tcp\"?",
                "8:10: discovery.types, item 1 must be a service type such as \"_mcp._tcp\", but is \"x\"",
                "8:28: discovery.types, item 3 must be a service type such as \"_mcp._tcp\", but is \"y\"",
                "9:1: [[endpoint]] number 1: address is missing; it must be a numeric address in quotes, or \"localhost\"",
                "9:1: [[endpoint]] number 1: port is missing; it must be a number from 1 to 65535",
                "10:1: [[endpoint]] number 1: name must be a text in quotes, but is 3",
                "11:1: [[endpoint]] number 1: kind: there is no kind \"aprevel\"; did you mean \"appreveal\"? "
                    + "The kinds are app-debug, appreveal, dart-vm, debug, mcp, openagents, tcp, web"
                    + "; for any other server use tcp",
                "12:1: [[endpoint]] number 1: host: there is no such key; the keys are name, kind, address, port, app, path",
                "13:1: tunnel: there is no such key; did you mean \"tunnels\"?",
            ],
            "\(lines)"
        )
    }

    @Test func `a wrong address and a name that is used twice are reported beside other errors of the endpoint`() {
        let text = """
            [[endpoint]]
            name = "lab"
            address = "lab.example"
            port = 70000
            [[endpoint]]
            name = "lab"
            kind = "aprevel"
            address = "::1"
            port = 1
            """

        let lines = errorMessage(text).split(separator: "\n").map { $0.dropFirst("patchbay.toml:".count) }

        #expect(lines.map { $0.prefix { $0 != ":" } } == ["3", "4", "6", "7"], "\(lines)")
        #expect(lines.first?.hasSuffix("\"lab.example\" is neither a numeric IP address nor localhost") == true)
        #expect(lines.dropFirst(2).first?.hasSuffix("which is the name of another endpoint") == true)
    }

    @Test(arguments: [
        ("max_age = 90", "audit.max_age must be a time in quotes such as \"90s\" or \"10m\", from 1d to 36500d"),
        ("max_age = \"90\"", "audit.max_age must be a time"), ("max_age = \"1h\"", "audit.max_age must be a time"),
        (
            "max_size = \"1MB\"",
            "audit.max_size must be a size in quotes such as \"500MB\" or \"2GB\", from 17MB to 1000GB"
        ),
    ]) func `durations and sizes have a unit`(line: String, sentence: String) throws {
        #expect(errorMessage("[audit]\n\(line)").contains(sentence), "\(errorMessage("[audit]\n\(line)"))")
        let valid = try parse("[audit]\nmax_age = \"90d\"\nmax_size = \"2GB\"").audit
        #expect(valid.maxAge?.seconds == 7_776_000)
        #expect(valid.maxSize?.bytes == 2_000_000_000)
    }

    @Test(arguments: [
        ("aprevel", "there is no kind \"aprevel\"; did you mean \"appreveal\"? The kinds are app-debug, appreveal, "),
        (
            "bo gus",
            "there is no kind \"bo gus\"; the kinds are app-debug, appreveal, dart-vm, debug, mcp, openagents, tcp, web"
                + "; for any other server use tcp"
        ),
    ]) func `the error for an unknown kind lists the kinds that exist`(kind: String, message: String) {
        let text = "[[endpoint]]\nname = \"x\"\nkind = \"\(kind)\"\naddress = \"::1\"\nport = 1"

        #expect(errorMessage(text).hasPrefix("patchbay.toml:3:1: [[endpoint]] number 1: kind: \(message)"))
    }

    @Test func `the kinds of profiles and of the configured service types exist`() throws {
        let text = """
            [discovery]
            types = ["_lab._tcp"]
            [[endpoint]]
            name = "a"
            kind = "app-debug"
            address = "::1"
            port = 1
            [[endpoint]]
            name = "b"
            kind = "lab"
            address = "::1"
            port = 1
            """

        #expect(try parse(text).endpoints.map(\.kind.text) == ["app-debug", "lab"])
    }

    @Test func `a syntax error has its line and column`() {
        #expect(errorMessage("[broker]\nlog_level = ").hasPrefix("patchbay.toml:2:13: "))
    }

    @Test(arguments: [("[!]\n", 2), ("[broker]\nlog_level = [}\n", 14)])
    func `a character in place of a key or value is a syntax error, although TOMLKit stops the process`(
        text: String,
        column: Int
    ) {
        let message = errorMessage(text)
        #expect(message.contains(":\(column): ") && message.contains(" cannot be here"), "\(message)")
    }

    @Test(arguments: [
        ("[devices]\nprobe_ports = \"9876\"", "probe_ports"),
        ("[devices]\nprobe_ports = [70000]", "probe_ports"),
        ("[devices]\nprobe_ports = [0]", "probe_ports"),
        ("[devices]\nclient = \"usb\"", "client"), ("[devices]\nadb = \"tcp:5037\"", "adb"),
        ("[discovery]\ntypes = [\"appreveal\"]", "discovery.types, item 1 must be a service type"),
        ("[discovery]\nenabled = \"yes\"", "enabled"),
        (
            "[discovery]\ntypes = [\"_mcp._tcp\", \"_debug._tcp\", \"_mcp._tcp\"]",
            "discovery.types has \"_mcp._tcp\" twice"
        ),
        ("[discovery]\ntypes = [\"_mcp._tcp\", \"_MCP._TCP\"]", "discovery.types has \"_mcp._tcp\" twice"),
        (
            "[discovery]\ntypes = [\"_mcp._tcp\", \"_mcp._tcp.\"]",
            "item 2 must be a service type such as \"_mcp._tcp\", but is \"_mcp._tcp.\""
        ),
        (
            "[[endpoint]]\nname = \"x\"\nkind = \"mcp\"\naddress = \"127.0.0.1\"\nport = 99999999",
            "port must be a number from 1 to 65535, but is 99999999"
        ),
        ("[tunnels]\nmax_connections = 0", "max_connections"), ("[devices]\nmax_streams = 0", "max_streams"),
        ("[broker]\nlog_level = \"loud\"", "log_level"),
        ("[[endpoint]]\nname = \"x\"\nkind = \"mcp\"\naddress = \"example.com\"\nport = 1", "numeric"),
    ])
    func `the error for an invalid value names the key`(text: String, name: String) {
        #expect(errorMessage(text).contains(name), "\(errorMessage(text))")
        #expect(errorMessage(text).contains("patchbay.toml"))
    }

    @Test(arguments: [
        ("[devices]\nclient = \"usb\"", "devices.client must be \"native\" or \"libusbmuxd\""),
        ("[discovery]\nenabled = \"yes\"", "discovery.enabled must be true or false"),
        ("[discovery]\ntypes = \"_mcp._tcp\"", "discovery.types must be a list of values in [], but is"),
        ("[discovery]\ntypes = [1]", "discovery.types, item 1 must be a service type such as \"_mcp._tcp\", but is 1"),
        ("[discovery]\ntypes = [\"_mcp._tcp\", \"x\"]", "discovery.types, item 2 must be a service type such as"),
        ("[discovery]\nreadvertise = \"usb\"", "discovery.readvertise must be a list of values in []"),
        ("[discovery]\nreadvertise = [\"wifi\"]", "discovery.readvertise, item 1 must be \"usb\""),
        (
            "[devices]\nprobe_ports = [80, 70000]",
            "devices.probe_ports, item 2 must be a number from 1 to 65535, but is 70000"
        ),
        ("[tunnels]\nmax_connections = \"1\"", "tunnels.max_connections must be a whole number"),
        ("tunnels = 3", "tunnels must be a table, but is 3"), ("api = 3", "api must be a table, but is 3"),
        ("[api]\ntcp = 1", "api.tcp must be true or false"),
        ("[api]\nport = 70000", "api.port must be a number from 1 to 65535, but is 70000"),
        ("[api]\nremote = true", "api.remote must be a numeric address with a port, such as"),
        ("[api]\nremote = \"desk.local:7283\"", "api.remote must be a numeric address with a port, such as"),
        ("[api]\nremote_names = [\"a b\"]", "api.remote_names, item 1 must be a host name or a numeric address"),
        ("[api]\nremote_key = \"/key.pem\"", "api.remote_key needs both files"),
        ("[api]\nremote = \"0.0.0.0:0\"", "api.remote must be a numeric address with a port, such as"),
        ("[api]\nremote = \"7283\"", "api.remote must be a numeric address with a port, such as"),
        ("[api]\nallowed_origins = \"x\"", "api.allowed_origins must be a list of values in []"),
        ("[endpoint]\nname = \"x\"", "endpoint must have the header [[endpoint]]"),
        ("[[endpoint]]\nname = \"x\"\naddress = \"::1\"", "[[endpoint]] number 1: port is missing"),
        ("[debuglink]\nlisten = \"desk:80\"", "debuglink.listen must be a numeric address with a port, such as"),
        ("[debuglink]\nlisten = \"9999\"", "debuglink.listen must be a numeric address with a port, such as"),
        ("[[endpoint]]\nname = 3\naddress = \"::1\"\nport = 1", "[[endpoint]] number 1: name must be a text in quotes"),
        ("[[endpoint]]\nname = \"x\"\naddress = \"::1\"\nport = 1\nhost = 2", "[[endpoint]] number 1: host"),
    ])
    func `the error for an invalid value uses the file's terms and describes valid values`(
        text: String,
        sentence: String
    ) {
        #expect(errorMessage(text).contains(#/^patchbay.toml:[0-9]+:[0-9]+: /#), "\(errorMessage(text))")
        #expect(errorMessage(text).contains(sentence), "\(errorMessage(text))")
    }

    @Test(arguments: [
        (
            "[broker]\nsocket = \"x.sock\"",
            "broker.socket must be an absolute path of at most 107 bytes, but is \"x.sock\""
        ),
        (
            "[broker]\nstate_directory = \"state\"",
            "broker.state_directory must be an absolute path in quotes, but is \"state\""
        ),
        ("[devices]\nusbmuxd = \"blah\"", "devices.usbmuxd must be \"/path\""),
        (
            "[tunnels]\nmax_connections = 99999999",
            "tunnels.max_connections must be a whole number from 1 to 500000, but is 99999999"
        ),
        ("[discovery]\ninterfaces = []", "discovery.interfaces is empty"),
        (
            "[discovery]\nreadvertise = [\"usb\"]\n[devices]\nenabled = false",
            "discovery.readvertise needs discovery.enabled = true and devices.enabled = true"
        ),
        ("[debuglink]\nname = \"\"", "debuglink.name must be a Bonjour name"),
        ("[team]\netcd = [\"http://a:2379\"]", "team.etcd, item 1 must be the URL of an etcd server"),
        ("[team]\netcd_ca = \"ca.pem\"", "team.etcd_ca must be an absolute path"),
        ("[team]\nhost = \"Lab 1\"", "team.host must be a host name"),
        ("[team]\nlisten = \"7284\"", "team.listen must be a numeric address with a port"),
        ("[team]\naddresses = [\"a b\"]", "team.addresses, item 1 must be a host name or an address"),
        (
            "[api]\nallowed_origins = [\"http://a:1/\"]",
            "api.allowed_origins, item 1 must be an origin as browsers send it"
        ),
        (
            "[api]\nallowed_origins = [\"http://a:1\", \"null\"]",
            "api.allowed_origins, item 2 must be an origin as browsers send it"
        ),
    ])
    func `values that would fail at startup are rejected when the file is loaded`(text: String, sentence: String) {
        #expect(errorMessage(text).contains(sentence), "\(errorMessage(text))")
    }

    @Test func `apps on a cable are not advertised unless the file says so, and then for one existing user`() throws {
        #expect(try parse("").discovery.readvertise.isEmpty)
        #expect(try parse("").readvertiseOwner() == geteuid())
        let configured = try parse("[discovery]\nreadvertise = [\"usb\"]\nreadvertise_user = \"root\"")
        #expect(configured.discovery.readvertise == [.usb])
        #expect(try configured.readvertiseOwner() == 0)

        var unknown = configured
        unknown.discovery.readvertiseUser = "no such user"
        #expect(throws: ConfigurationError.self) { try unknown.readvertiseOwner() }
    }

    @Test func `a value that this machine cannot use has its line`() async throws {
        let file = try scratch.write("\n[discovery]\nreadvertise_user = \"no such user\"", to: "patchbay.toml")

        #expect(
            throws: ConfigurationError.several([
                .invalid(
                    .invalid(
                        file: file,
                        at: FilePosition(line: 3, column: 1),
                        reason: "discovery.readvertise_user is \"no such user\"; this machine has no such user"
                    )
                )
            ])
        ) { try ConfigurationLoader(environment: [:]).load(file) }
    }

    @Test func `an endpoint without a kind is tcp, as in patchbay add`() throws {
        let endpoint = try parse("[[endpoint]]\nname = \"x\"\naddress = \"::1\"\nport = 1").endpoints.first

        #expect(endpoint == StaticEndpoint(name: "x", kind: .tcp, address: "::1", port: 1))
    }

    @Test(arguments: ["[tunnels]\n\"a\\u001B[2Jb\" = 3", "[broker]\nlog_level = \"\\u001B[2J\"", "\u{1B} = 3"])
    func `an error message has no control characters`(text: String) {
        #expect(errorMessage(text) != "no error")
        #expect(errorMessage(text).unicodeScalars.allSatisfy { SanitizedText.isSafe($0) }, "\(errorMessage(text))")
    }
}
