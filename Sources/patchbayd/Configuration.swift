import Devices
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
