import API
import AccessControl
import Devices
import Logging
import Model
import SystemIO
import TOML
import Team
import Transport

/// The whole configuration file, one row for each key.
///
/// Reading, `patchbay config show`, the reload, the example file and the manual page are all made from this table. A row
/// with `reload` applies a change at once; other keys need a restart.
extension ConfigurationKey {
    /// Every key, in the order of `config/patchbay.example.toml`.
    static let all = broker + api + audit + discovery + devices + servers + team + [endpoint]

    /// Each connection needs two descriptors. By default, Linux allows at most 1,048,576 per process (fs.nr_open).
    private static let connectionLimits = 1...500_000
    /// A day to 100 years.
    private static let auditAges = 86_400...3_153_600_000
    /// Two segments of 8 MiB to 1 TB.
    private static let auditSizes = 17_000_000...1_000_000_000_000
    private static let activityCalls = 0...10_000
    private static let activityPictures = 0...1_024
    private static let pair: Check = { all, _ in CertificateFiles.lack(all.api.remoteCertificate, all.api.remoteKey) }

    // swift-format-ignore
    private static let broker: [ConfigurationKey] = [
        .init("broker.socket", \.broker.socket,
            .optional(.path("an absolute path of at most \(ListenAddress.pathLimit) bytes", limit: ListenAddress.pathLimit)),
            example: "/run/patchbay/patchbay.sock", """
            The unix socket of the API, an absolute path of at most 107 bytes. The broker's own user, root and the group
            patchbay have full access. The mode is 0660 if the group exists and the broker may assign the file to it,
            otherwise 0600.
            Default: systemd's RuntimeDirectory, /run/patchbay/patchbay.sock for root, $XDG_RUNTIME_DIR/patchbay/patchbay.sock.
            """),
        .init("broker.state_directory", \.broker.stateDirectory, .optional(.path), example: "/var/lib/patchbay", """
            The folder for persistent state such as endpoint IDs and tunnels, an absolute path.
            Default: systemd's StateDirectory, /var/lib/patchbay for root, $XDG_STATE_HOME/patchbay.
            """),
        .init("broker.log_level", \.broker.logLevel,
            .text("one of \(Configuration.Broker.logLevels.joined(separator: ", "))", where: Configuration.Broker.logLevels.contains),
            reload: { configuration, targets in targets.logLevel.set(configuration.broker.logLevel) }, """
            trace, debug, info, notice, warning, error or critical.
            """),
    ]

    // swift-format-ignore
    private static let api: [ConfigurationKey] = [
        .init("api.tcp", \.api.tcp, .flag, """
            Listen on 127.0.0.1 and ::1 too, for clients with a grant (patchbay pair).
            """),
        .init("api.port", \.api.port, .port, """
            The TCP port. If another program uses it, the broker logs a warning and serves the unix socket only.
            """),
        .init("api.allowed_origins", \.api.allowedOrigins,
            // RFC 6454, section 6.1. "null" is invalid because every page can send it.
            .list(of: .text("an origin as browsers send it, such as \"http://localhost:5173\", without a path and in small letters",
                where: { $0.wholeMatch(of: #/[a-z][a-z0-9+.-]*://[a-z0-9.:\[\]-]+/#) != nil })), """
            Origins of web pages that may call the API on the TCP port with a grant of their own ("http://localhost:5173").
            Their responses have CORS headers. All other pages are rejected.
            """),
        .init("api.allow_any_user", \.api.allowAnyUser, .flag, """
            Allow processes of every user to connect to the unix socket (mode 0666). Users without owner access can do what
            their grants allow, and can request a grant.
            """),
        .init("api.remote", \.api.remote,
            .optional(.text("a numeric address with a port, such as \"\(RemoteSpec.standardAddress)\" or \"[::]:7283\"",
                SocketAddress.init(withPort:))),
            example: .string(RemoteSpec.standardAddress), """
            Listen for other machines too, over TLS with the broker's own key, on this numeric address and port. Clients
            need a grant. While this key is set, `patchbay remote on` and `off` are refused. Default: off.
            """),
        .init("api.remote_names", \.api.remoteNames,
            .list(of: .text("a host name or a numeric address", where: MachineHostNames.isValid)), """
            More names for the certificate of the remote listener, which has the host names and addresses of this machine.
            """),
        .init("api.remote_certificate", \.api.remoteCertificate, .optional(.path), example: "/etc/patchbay/fullchain.pem",
            check: pair, """
            A certificate of your own with its chain, as PEM, for clients that ask for one of its names; others get the
            broker's own. Replaced files are used at the next connection.
            """),
        .init("api.remote_key", \.api.remoteKey, .optional(.path), example: "/etc/patchbay/privkey.pem", check: pair, """
            The key of api.remote_certificate, as PEM without a passphrase.
            """),
        .init("api.oauth", \.api.oauth, .flag, """
            Let MCP clients that know only a URL ask for access over OAuth 2.1, on TCP and remotely. An owner approves each.
            """),
        .init("api.oauth_client_metadata", \.api.oauthClientMetadata, .flag, """
            Also let clients of OAuth name themselves by a public https URL, from which the broker then fetches a document.
            """),
    ]

    // swift-format-ignore
    private static let audit: [ConfigurationKey] = [
        .init("audit.max_age", \.audit.maxAge, .optional(.duration(in: auditAges)), example: "365d", reload: setRetention, """
            Delete entries of the audit log that are older ("90d"). The log is deleted in files of 8 MiB, the oldest first.
            Default: keep all.
            """),
        .init("audit.max_size", \.audit.maxSize, .optional(.size(in: auditSizes)), example: "1GB", reload: setRetention, """
            Delete the oldest entries of a larger log ("500MB", "2GB"), at least 17MB.
            Default: keep all.
            """),
    ]

    private static let setRetention: Application = { configuration, targets in
        await targets.accessStore.setAuditRetention(configuration.audit.retention)
    }

    // swift-format-ignore
    private static let discovery: [ConfigurationKey] = [
        .init("discovery.enabled", \.discovery.enabled, .flag, """
            Bonjour through Avahi: browsing and `patchbay advertise`.
            """),
        .init("discovery.types", \.discovery.types,
            .list(of: .text("a service type such as \"_mcp._tcp\"") { ServiceType($0) }),
            check: { configuration, _ in
                let types = configuration.discovery.types
                return types.first { type in types.count { $0 == type } > 1 }.map {
                    "has \"\($0)\" twice; it must list each type once, in capitals or not"
                }
            }, """
            The service types to browse, each once. Other brokers (_patchbay._tcp) are browsed in any case.
            """),
        .init("discovery.interfaces", \.discovery.interfaces, .list(of: interfaceName),
            check: { configuration, _ in
                guard configuration.discovery.interfaces.isEmpty else { return nil }
                return "is empty, so that nothing would be found; name interfaces, such as [\"*\"] for all, or set "
                    + "discovery.enabled = false"
            }, """
            Network interfaces by name; * matches any characters, ? matches one.
            """),
        .init("discovery.deny_interfaces", \.discovery.denyInterfaces, .list(of: interfaceName), """
            A denied interface is never used.
            """),
        .init("discovery.readvertise", \.discovery.readvertise, .list(of: .choice),
            check: { configuration, _ in
                guard !configuration.discovery.readvertise.isEmpty,
                    !configuration.discovery.enabled || !configuration.devices.enabled
                else { return nil }
                return "needs discovery.enabled = true and devices.enabled = true; set both, or remove the key"
            }, """
            Publish apps on a cable, which cannot announce themselves: ["usb"] or []. AppReveal becomes _appreveal._tcp,
            app-debug becomes _debug._tcp. Only programs of this machine find them: the service is on the loopback
            interface, and its port is a tunnel on 127.0.0.1 and ::1 for one user. Avahi must use the interface lo, as it
            does by default.
            """),
        .init("discovery.readvertise_user", \.discovery.readvertiseUser, .optional(.text), example: "anna",
            check: { configuration, _ in
                ConfigurationError.reason { () throws(ConfigurationError) in _ = try configuration.readvertiseOwner() }
            }, """
            The user whose programs may connect to these services.
            Default: the broker's own user.
            """),
    ]

    private static let interfaceName = ValueFormat<String>.text("the name of interfaces in quotes, such as \"eth*\"") {
        $0
    }

    // swift-format-ignore
    private static let devices: [ConfigurationKey] = [
        .init("devices.enabled", \.devices.enabled, .flag, """
            Phones: iPhones through usbmuxd, Android phones through adb.
            """),
        .init("devices.client", \.devices.client, .choice, """
            "native" is Patchbay's own client; "libusbmuxd" uses the library for streams.
            """),
        .init("devices.usbmuxd", \.devices.usbmuxd,
            .optional(.text("\"/path\", \"UNIX:/path\", \"host:port\" or \"[v6]:port\"", where: { ServerAddress($0) != nil })),
            example: "/var/run/usbmuxd", """
            Where usbmuxd listens: "/path", "UNIX:/path", "host:port" or "[v6]:port".
            Default: $USBMUXD_SOCKET_ADDRESS, else /var/run/usbmuxd.
            """),
        .init("devices.serve_usbmuxd", \.devices.serveUsbmuxd,
            .optional(.text("\"unix:/path\": the mode of the unix socket keeps other users from your phones",
                where: { ServerAddress($0)?.path != nil })),
            example: "unix:/run/patchbay/tunnels/usbmuxd",
            check: { configuration, context in
                guard configuration.devices.enabled || configuration.devices.serveUsbmuxd == nil else {
                    return "needs devices.enabled = true; remove one of the two settings"
                }
                return ConfigurationError.reason { () throws(ConfigurationError) in
                    _ = try configuration.usbmuxServerPath(context.environment)
                }
            }, """
            The socket of a usbmuxd-compatible server for tools such as iproxy, idevice_id and pymobiledevice3. With
            USBMUXD_SOCKET_ADDRESS=UNIX:/run/patchbay/tunnels/usbmuxd they use the phones through Patchbay. The broker's own
            user, root and the group patchbay may connect. A path in a private folder of the service, such as /tmp, is
            refused.
            Default: none.
            """),
        .init("devices.adb", \.devices.adb,
            .text("\"auto\", \"off\", \"HOST:PORT\" or \"/path\"") { ADBSetting($0) }, """
            The adb server, through which Android phones are reached. "auto" is the server of this machine, which the
            variables of adb may name: ADB_SERVER_SOCKET, or ANDROID_ADB_SERVER_ADDRESS and ANDROID_ADB_SERVER_PORT, else
            127.0.0.1:5037. It is used while it runs. "HOST:PORT" or "/path" name a server; adb has no authentication, so
            only name one of another machine that you trust. "off" uses none.
            """),
        .init("devices.adb_start", \.devices.adbStart, .flag, """
            Start a server on this machine where none runs (`adb start-server`). Otherwise it is used only while another
            program, such as Android Studio, has started it.
            """),
        .init("devices.read_logs", \.devices.readLogs, .flag, """
            Read the log of each Android phone, and the list of its debuggable apps. So an app is found on any port, and the
            session token that AppReveal logs and the code of a Dart VM service need no person. A line counts only for a
            port of the app that wrote it. `patchbay log` needs it too.
            """),
        .init("devices.probe_ports", \.devices.probePorts, .list(of: .port), """
            Ports on each phone's loopback interface that are probed for debug servers: AppReveal, MCP over HTTP (at /mcp or
            /) or in lines over TCP, and the server of every profile. The ports of the profiles are probed too, each for its
            own server. An empty list disables the probes. Each port is probed once a second while a client of the broker is
            connected, otherwise less often. A port with a tunnel, a call or a session is not probed: its server may accept
            one client only.
            """),
        .init("devices.max_streams", \.devices.maxStreams, .number(in: connectionLimits), """
            The maximum number of streams through usbmuxd, and of those through adb; further ones are rejected. usbmuxd
            terminates when it runs out of descriptors, with the usual limit at about 1,019 clients of all programs. An adb
            server hangs.
            """),
    ]

    /// The tables `[tunnels]`, `[mcp]`, `[activity]` and `[debuglink]`.
    // swift-format-ignore
    private static let servers: [ConfigurationKey] = [
        .init("tunnels.max_connections", \.tunnels.maxConnections, .number(in: connectionLimits), """
            The maximum number of connections through all tunnels, 1 to 500000; further ones are rejected.
            """),
        .init("mcp.all", \.mcp.all, .flag, """
            The broker's own tools are at /mcp, and each app is at /e/ID/mcp. With true, all apps' tools are at /all/mcp too.
            """),
        .init("activity.calls", \.activity.calls, .number(in: activityCalls), """
            The number of calls of apps' tools that the broker remembers for `patchbay activity` and the page: in memory
            only, without secrets. 0 turns the history off.
            """),
        .init("activity.pictures_mb", \.activity.picturesMB, .number(in: activityPictures), """
            The memory for the pictures in these calls, in MB. The oldest are dropped first.
            """),
        .init("debuglink.enabled", \.debugLink.enabled, .flag, """
            A state debugger (_debug._tcp) that apps connect to. Any machine that reaches the port can pose as an app.
            """),
        .init("debuglink.listen", \.debugLink.listen,
            .text("a numeric address with a port, such as \"0.0.0.0:9999\" or \"[::]:0\"") { text in
                guard case .tcp(let host?, let port)? = ListenAddress(text) else { return nil }
                return SocketAddress(numeric: host, port: port)
            }, """
            The address and port to listen on. Port 0 selects a free port; [::] is every interface, with IPv4.
            """),
        .init("debuglink.name", \.debugLink.name, .optional(bonjourName), example: "patchbay-desk", """
            The name of the advertisement. Default: patchbay- with the name of this machine.
            """),
        .init("debuglink.forward", \.debugLink.forward, .optional(bonjourName), example: "Anna’s MacBook", """
            The name of another state debugger on the network, which gets the apps' streams and may send states back. Naming
            it here is the consent to connections to it. Default: none.
            """),
    ]

    private static let bonjourName = ValueFormat<String>.text(
        "a Bonjour name of 1 to \(SanitizedText.nameLimit) bytes",
        where: { !$0.isEmpty && SanitizedText($0).text == $0 }
    )

    // swift-format-ignore
    private static let team: [ConfigurationKey] = [
        .init("team.etcd", \.team.etcd,
            .list(of: .text("the URL of an etcd server, such as \"https://10.0.0.5:2379\"", where: { EtcdEndpoint($0) != nil })),
            example: ["https://10.0.0.5:2379"], """
            For a team, which `patchbay team init` and `patchbay team join` set up (docs/team.md). Without it, this table has
            no effect.
            The etcd servers. Default: those of `patchbay team init`, which the other hosts get when they join.
            """),
        .init("team.etcd_ca", \.team.etcdAuthority, .optional(.path), example: "/etc/etcd/ca.pem", """
            The authorities of the etcd servers, as PEM. Default: the authority of the team, or that of `team init --etcd-ca`.
            """),
        .init("team.host", \.team.host,
            .optional(.text("a host name of 1 to 32 letters a-z, digits and hyphens") { HostName($0) }), example: "lab1", """
            The name of this host in the team: a-z, 0-9 and hyphens. Default: the name of the machine, up to its first dot.
            """),
        .init("team.listen", \.team.listen,
            .text("a numeric address with a port, such as \"0.0.0.0:7284\" or \"[::]:7284\"", SocketAddress.init(withPort:)), """
            The address and port for the brokers of the other hosts. Only members of the team get an answer.
            """),
        .init("team.addresses", \.team.addresses,
            .list(of: .text("a host name or an address, such as \"10.0.0.7\", \"lab2.example.com:7284\" or \"[fd00::7]:7284\"") {
                TeamAddress($0)
            }),
            example: ["lab1.example.com", "10.0.0.7:7284"], """
            What the other hosts dial, the best one first. Default: the addresses of this machine with the port above.
            """),
    ]
}
