import AccessControl
import Devices
import Discovery
import Glibc
import Logging
import Model
import SystemIO
import Team

/// The content of the configuration file, with its defaults. `ConfigurationKey.all` has the meaning of each key.
struct Configuration: Equatable, Sendable {
    struct Broker: Equatable, Sendable {
        var socket: String?
        var stateDirectory: String?
        /// One of `logLevels`.
        var logLevel = "info"

        /// The valid values of `log_level` and `--log-level`.
        static let logLevels = Logger.Level.allCases.map(\.rawValue)
    }

    struct API: Equatable, Sendable {
        var tcp = true
        var port: UInt16 = 7_282
        var allowedOrigins: [String] = []
        var allowAnyUser = false
        /// The address of the remote listener; nil leaves the choice to `patchbay remote`.
        var remote: SocketAddress?
        var remoteNames: [String] = []
        var remoteCertificate: String?
        var remoteKey: String?
        var oauth = false
        var oauthClientMetadata = false
    }

    /// The retention of the audit log. Only full segments are deleted.
    struct Audit: Equatable, Sendable {
        var maxAge: DurationText?
        var maxSize: ByteCountText?

        var retention: AuditRetention { AuditRetention(maxAge: maxAge?.seconds, maxBytes: maxSize?.bytes) }
    }

    struct Discovery: Equatable, Sendable {
        var enabled = true
        var types = ServiceType.standard
        var interfaces = ["*"]
        var denyInterfaces = ["docker*", "veth*", "br-*", "virbr*"]
        var readvertise: [ReadvertisedTransport] = []
        var readvertiseUser: String?

        var interfaceFilter: InterfaceFilter { InterfaceFilter(allowed: interfaces, denied: denyInterfaces) }
    }

    /// A transport on which an app cannot announce itself.
    enum ReadvertisedTransport: String, CaseIterable {
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
        var serveUsbmuxd: String?
        var adb = ADBSetting.auto
        var adbStart = false
        var readLogs = true
        var probePorts: [UInt16] = [9_876, 8_765]
        var maxStreams = NativeUsbmuxClient.streamLimit
    }

    struct Tunnels: Equatable, Sendable {
        var maxConnections = 2_000
    }

    struct MCP: Equatable, Sendable {
        var all = false
    }

    /// The history of calls, in memory.
    struct Activity: Equatable, Sendable {
        var calls = 500
        var picturesMB = 64
    }

    /// The state debugger that apps connect to.
    struct DebugLink: Equatable, Sendable {
        var enabled = false
        var listen = SocketAddress.ipv6(0, port: 0, scope: 0)
        var name: String?
        var forward: String?
    }

    var broker = Broker()
    var api = API()
    var audit = Audit()
    var discovery = Discovery()
    var devices = Devices()
    var tunnels = Tunnels()
    var mcp = MCP()
    var activity = Activity()
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
    func usbmuxdAddress(_ environment: [String: String]) throws(ConfigurationError) -> ServerAddress {
        do {
            guard let configured = devices.usbmuxd else { return try ServerAddress(usbmuxdIn: environment) }
            return try ServerAddress(usbmuxd: configured)
        } catch {
            throw .badAddress(reason: "\(error)")
        }
    }

    /// Returns the socket path of the usbmuxd-compatible server; nil if the server is disabled.
    /// - Throws: `ConfigurationError.unusable` if usbmuxd itself has that path, `.badAddress`.
    func usbmuxServerPath(_ environment: [String: String]) throws(ConfigurationError) -> String? {
        guard let path = devices.serveUsbmuxd.flatMap({ ServerAddress($0)?.path }) else { return nil }
        if let usbmuxd = try usbmuxdAddress(environment).path, Self.resolved(usbmuxd) == Self.resolved(path) {
            throw .unusable(
                key: "devices.serve_usbmuxd",
                reason: "is \(path), which is usbmuxd's address too, so Patchbay would connect to itself; set "
                    + "devices.usbmuxd to usbmuxd's own socket (\(ServerAddress.standardUsbmuxd)), or "
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
    /// Returns the user ID of the user whose processes may connect to readvertised services.
    ///
    /// - Throws: `ConfigurationError.unusable` if the user does not exist.
    func readvertiseOwner() throws(ConfigurationError) -> UInt32 {
        guard let name = discovery.readvertiseUser else { return geteuid() }
        guard let entry = getpwnam(name) else {
            throw .unusable(
                key: "discovery.readvertise_user",
                reason: "is \"\(SanitizedText(name))\"; this machine has no such user"
            )
        }
        return entry.pointee.pw_uid
    }
}
