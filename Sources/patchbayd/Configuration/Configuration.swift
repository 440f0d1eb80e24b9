import AccessControl
import Devices
import Glibc
import Model
import SystemIO

/// The content of the configuration file. Every key is optional; `config/patchbay.example.toml` lists them all.
struct Configuration: Equatable, Sendable {
    struct Broker: Equatable, Sendable {
        /// The unix socket; nil selects the default path.
        var socket: String?
        /// The directory for persistent state; nil selects the default path.
        var stateDirectory: String?
        /// trace, debug, info, notice, warning, error or critical.
        var logLevel = "info"
    }

    struct API: Equatable, Sendable {
        /// True if the API also listens on 127.0.0.1 and ::1, for clients with a grant.
        var tcp = true
        var port: UInt16 = 7_282
        /// The origins of web pages that may call the API.
        var allowedOrigins: [String] = []
        /// True if processes of every user may connect to the unix socket. Their permissions are checked per request.
        var allowAnyUser = false
        /// The address of the remote listener; nil leaves the choice to `patchbay remote`.
        var remote: SocketAddress?
    }

    /// The retention of the audit log. Only full segments are deleted.
    struct Audit: Equatable, Sendable {
        /// Deletes segments whose last entry is older; nil keeps them.
        var maxAge: DurationText?
        /// Deletes the oldest segments of a larger log; nil keeps them.
        var maxSize: ByteCountText?

        var retention: AuditRetention { AuditRetention(maxAge: maxAge?.seconds, maxBytes: maxSize?.bytes) }
    }

    struct Discovery: Equatable, Sendable {
        var enabled = true
        var types = ServiceType.standard
        /// Interface names with the wildcards `*` and `?`. A denied interface is never used.
        var interfaces = ["*"]
        var denyInterfaces = ["docker*", "veth*", "br-*", "virbr*"]
        /// The transports whose apps are published as Bonjour services of this machine.
        var readvertise: [ReadvertisedTransport] = []
        /// The name of the user whose processes may connect to the published services. Nil means the broker's own user.
        var readvertiseUser: String?
    }

    /// A transport on which an app cannot announce itself.
    enum ReadvertisedTransport: String {
        case usb
    }

    struct Devices: Equatable, Sendable {
        enum Client: String, CaseIterable {
            case native
            case libusbmuxd
        }

        var enabled = true
        var client = Client.native
        /// The address of usbmuxd in any form of USBMUXD_SOCKET_ADDRESS. Nil selects that variable, else
        /// /var/run/usbmuxd.
        var usbmuxd: String?
        /// The address of the usbmuxd-compatible server, `unix:/path`; nil disables the server.
        var serveUsbmuxd: String?
        /// Ports on a phone's loopback interface that are probed for debug servers.
        var probePorts: [UInt16] = [9_876, 8_765]
        /// The maximum number of streams through usbmuxd; further ones are rejected.
        var maxStreams = NativeUsbmuxClient.streamLimit
    }

    struct Tunnels: Equatable, Sendable {
        /// The maximum number of connections through all tunnels; further ones are rejected.
        var maxConnections = 2_000
    }

    struct MCP: Equatable, Sendable {
        /// True if the tools of all apps are also served at one URL.
        var all = false
    }

    /// The state debugger that apps connect to.
    struct DebugLink: Equatable, Sendable {
        var enabled = false
        /// All interfaces and any free port, unless configured.
        var listen = SocketAddress.ipv6(0, port: 0, scope: 0)
        /// The name of the advertisement; nil selects `patchbay-` with the name of this machine.
        var name: String?
        /// The name of another state debugger that gets the apps' streams; nil for none.
        var forward: String?
    }

    var broker = Broker()
    var api = API()
    var audit = Audit()
    var discovery = Discovery()
    var devices = Devices()
    var tunnels = Tunnels()
    var mcp = MCP()
    var debugLink = DebugLink()
    var team = TeamConfiguration()
    /// The static endpoints.
    var endpoints: [StaticEndpoint] = []
    /// The path of the loaded file; nil if there was none.
    var file: String?
}

/// The address of usbmuxd and the path of the usbmuxd-compatible server, which must differ.
extension Configuration {
    /// Returns the address of usbmuxd.
    /// - Throws: `ConfigurationError.badAddress`.
    func usbmuxdAddress(_ environment: [String: String]) throws(ConfigurationError) -> UsbmuxAddress {
        do {
            guard let configured = devices.usbmuxd else { return try UsbmuxAddress(environment: environment) }
            return try UsbmuxAddress(configured)
        } catch {
            throw .badAddress(reason: "\(error)")
        }
    }

    /// Returns the socket path of the usbmuxd-compatible server; nil if the server is disabled.
    /// - Throws: `ConfigurationError.unusable` if usbmuxd itself has that path, `.badAddress`.
    func usbmuxServerPath(_ environment: [String: String]) throws(ConfigurationError) -> String? {
        guard let path = devices.serveUsbmuxd.flatMap({ (try? UsbmuxAddress($0))?.path }) else { return nil }
        if let usbmuxd = try usbmuxdAddress(environment).path, Self.resolved(usbmuxd) == Self.resolved(path) {
            throw .unusable(
                table: "devices",
                key: "serve_usbmuxd",
                reason: "is \(path), which is usbmuxd's address too, so Patchbay would connect to itself; set "
                    + "devices.usbmuxd to usbmuxd's own socket (\(UsbmuxAddress.standard)), or "
                    + "devices.serve_usbmuxd to another path"
            )
        }
        return path
    }

    /// The path with its folder's symbolic links resolved; the file need not exist. /var/run is a link to /run.
    private static func resolved(_ path: String) -> String {
        let end = path.lastIndex(of: "/") ?? path.startIndex
        let folder = end == path.startIndex ? "/" : String(path[..<end])
        guard let real = realpath(folder, nil) else { return path }
        defer { free(real) }
        return "\(String(cString: real))/\(path[path.index(after: end)...])"
    }
}

extension Configuration {
    /// Checks the keys that depend on the environment and on this machine, and returns the errors.
    func errors(_ environment: [String: String]) -> [ConfigurationError] {
        var errors: [ConfigurationError] = []
        do {
            if devices.enabled { _ = try usbmuxdAddress(environment) }
            _ = try usbmuxServerPath(environment)
        } catch { errors.append(error) }
        do { _ = try readvertiseOwner() } catch { errors.append(error) }
        return errors
    }

    /// Returns the user ID of the user whose processes may connect to readvertised services.
    ///
    /// - Throws: `ConfigurationError.unusable` if the user does not exist.
    func readvertiseOwner() throws(ConfigurationError) -> UInt32 {
        guard let name = discovery.readvertiseUser else { return geteuid() }
        guard let entry = getpwnam(name) else {
            throw .unusable(
                table: "discovery",
                key: "readvertise_user",
                reason: "is \"\(SanitizedText(name))\"; this machine has no such user"
            )
        }
        return entry.pointee.pw_uid
    }
}
