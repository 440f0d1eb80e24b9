import Devices
import Glibc
import Model

/// What the configuration file says. Every key may be left out; `config/patchbay.example.toml` has them all.
struct Configuration: Equatable, Sendable {
    struct Broker: Equatable, Sendable, Decodable {
        /// The unix socket; nil is the usual place.
        var socket: String?
        /// Where what must outlive a restart is kept; nil is the usual place.
        var stateDirectory: String?
        /// trace, debug, info, notice, warning, error or critical.
        var logLevel = "info"
    }

    struct API: Equatable, Sendable, Decodable {
        /// Whether there is a door on 127.0.0.1 and ::1, for whoever holds a grant.
        var tcp = true
        var port: UInt16 = 7_282
        /// Web pages that may call it all the same, by origin.
        var allowedOrigins: [String] = []
        /// Whether processes of every user may connect to the unix socket; what they may do is another question.
        var anyUser = false
    }

    struct Discovery: Equatable, Sendable, Decodable {
        var enabled = true
        var types = ServiceType.standard
        /// Interfaces by name, `*` and `?` allowed. Denied wins.
        var interfaces = ["*"]
        var denyInterfaces = ["docker*", "veth*", "br-*", "virbr*"]
    }

    struct Devices: Equatable, Sendable, Decodable {
        enum Client: String, Decodable, CaseIterable {
            case native
            case libusbmuxd
        }

        var enabled = true
        var client = Client.native
        /// Where usbmuxd listens, in any form of USBMUXD_SOCKET_ADDRESS; nil is that variable, else /var/run/usbmuxd.
        var usbmuxd: String?
        /// Where usbmuxd's own clients are served, `unix:/path`; nil is nowhere.
        var facade: String?
        /// Ports on a phone's loopback that are tried for debug servers.
        var probePorts: [UInt16] = [9_876, 8_765]
        /// Streams through usbmuxd at once; one more is refused.
        var maxStreams = UsbmuxConnectionLimit.standard
    }

    struct Tunnels: Equatable, Sendable, Decodable {
        /// Connections through all tunnels together; one more is refused.
        var maxConnections = 2_000
    }

    struct MCP: Equatable, Sendable, Decodable {
        /// Whether the tools of all apps can be had at one address as well.
        var all = false
    }

    var broker = Broker()
    var api = API()
    var discovery = Discovery()
    var devices = Devices()
    var tunnels = Tunnels()
    var mcp = MCP()
    /// Endpoints that nothing announces.
    var endpoints: [StaticEndpoint] = []
    /// The file this was read from; nil when there was none.
    var file: String?
}

/// Two addresses that must not be the same: where usbmuxd is, and where its clients are served.
extension Configuration {
    /// Where usbmuxd listens.
    /// - Throws: `ConfigurationError.badAddress`.
    func usbmuxdAddress(_ environment: [String: String]) throws(ConfigurationError) -> UsbmuxAddress {
        do {
            guard let configured = devices.usbmuxd else { return try UsbmuxAddress(environment: environment) }
            return try UsbmuxAddress(configured)
        } catch {
            throw .badAddress(what: "\(error)")
        }
    }

    /// The path of the socket at which usbmuxd's clients are served; nil where they are not.
    /// - Throws: `ConfigurationError.badAddress`.
    func facadePath(_ environment: [String: String]) throws(ConfigurationError) -> String? {
        guard let text = devices.facade else { return nil }
        guard let path = (try? UsbmuxAddress(text))?.path else {
            throw .badAddress(
                what:
                    "devices.facade must be \"unix:/path\", a unix socket: its mode keeps other users from your phones"
            )
        }
        guard devices.enabled else {
            throw .badAddress(
                what: "devices.facade shows phones, and devices.enabled = false hides them; remove one of them"
            )
        }
        if let usbmuxd = try usbmuxdAddress(environment).path, Self.place(of: usbmuxd) == Self.place(of: path) {
            throw .badAddress(
                what: "devices.facade and usbmuxd's address are both \(path), so Patchbay would wait for itself; set "
                    + "devices.usbmuxd to usbmuxd's own socket (\(UsbmuxAddress.standard)), or devices.facade to another path"
            )
        }
        return path
    }

    /// One spelling for one file, whether or not it is there: /var/run is a link to /run.
    private static func place(of path: String) -> String {
        let end = path.lastIndex(of: "/") ?? path.startIndex
        let folder = end == path.startIndex ? "/" : String(path[..<end])
        guard let real = realpath(folder, nil) else { return path }
        defer { free(real) }
        return "\(String(cString: real))/\(path[path.index(after: end)...])"
    }
}
