package import Logging
package import Model
package import SystemIO
package import Transport

/// The remote listener, which commands turn on and off. `service` serves.
package actor RemoteListener {
    /// The settings that do not change while the broker runs.
    package struct Settings: Sendable {
        /// The address of the configuration file; nil if the file has none.
        let configured: SocketAddress?
        /// The path of the configuration file, for messages.
        let configurationFile: String?
        /// More names and addresses for the certificate.
        let names: [String]
        /// A certificate of the owner's own.
        let files: CertificateFiles?
        /// Returns the addresses of this machine that are shown.
        let reachable: @Sendable () -> [String]
        /// Gets each reason once for which the owner's certificate or its files are of no use.
        let report: @Sendable (String) -> Void

        package init(
            configured: SocketAddress?,
            configurationFile: String?,
            names: [String] = [],
            files: CertificateFiles? = nil,
            report: @escaping @Sendable (String) -> Void = { _ in },
            reachable: @escaping @Sendable () -> [String]
        ) {
            self.configured = configured
            self.configurationFile = configurationFile
            self.names = names
            self.files = files
            self.reachable = reachable
            self.report = report
        }

        /// The names and addresses for the certificate. The local ones are for clients through ssh.
        var certificateNames: [String] {
            MachineHostNames.current() + names + reachable() + ["localhost", "127.0.0.1", "::1"]
                + [configured].compactMap { $0.flatMap { $0.isUnspecified ? nil : $0.host } }
        }
    }

    private let settings: Settings
    private let identityFile: TLSIdentityFile
    private let file: StateFile<RemoteSpec>
    private let limiter: ConnectionLimiter
    private let unauthenticated = UnauthenticatedConnectionLimiter()

    private var pin: KeyPin?
    private var tls: ServerTLS?
    /// The address at which to listen; nil if the listener is off.
    package private(set) var address: SocketAddress?
    /// The socket that a command has bound, until the service takes it.
    private var bound: Listener?
    /// The server, until its connections are closed.
    private var server: APIServer?
    private var problem: String?
    private var closed: [CheckedContinuation<Void, Never>] = []
    private let stateChanges = Broadcast<Void>(slow: .keepsNewest(1))

    /// Restores the saved state. The configuration file wins over the saved state.
    ///
    /// - Throws: `StateError`, or the error of the key file if the listener is on.
    package init(
        _ settings: Settings,
        identityFile: TLSIdentityFile,
        file: StateFile<RemoteSpec>,
        limiter: ConnectionLimiter
    ) async throws {
        self.settings = settings
        self.identityFile = identityFile
        self.file = file
        self.limiter = limiter
        let saved = try await file.read()
        let savedAddress = saved.flatMap { $0.enabled ? $0.address.flatMap(SocketAddress.init(withPort:)) : nil }
        address = settings.configured ?? savedAddress
        pin = try? identityFile.load()?.pin
        if address != nil { try prepareTLS() }
    }

    /// Loads the key, or creates it at the first time.
    @discardableResult
    private func prepareTLS() throws -> ServerTLS {
        let identity = try identityFile.loadOrCreate()
        let tls = try ServerTLS(identity: identity, files: settings.files, report: settings.report) { [settings] in
            settings.certificateNames
        }
        self.tls = tls
        pin = identity.pin
        return tls
    }

    /// Subscribes to changes of the state. A slow subscriber gets one element for several changes.
    package nonisolated func changes() -> AsyncStream<Void> { stateChanges.subscribe() }
}

extension ServerTLS: TransportSecurity {}

/// The commands of the API.
extension RemoteListener {
    package func status() -> RemoteStatus {
        let port = address?.port ?? 0
        let hosts: [String] =
            switch address {
            case let address? where address.isUnspecified: settings.reachable()
            case let address?: [address.host]
            case nil: []
            }
        return RemoteStatus(
            state: address == nil ? .off : bound == nil && server == nil ? .waiting : .listening,
            address: address?.description,
            configured: settings.configured != nil,
            pin: pin,
            reachable: hosts.compactMap { SocketAddress(numeric: $0, port: port)?.description },
            connections: limiter.remoteConnections,
            refusedHandshakes: unauthenticated.refusedHandshakes,
            problem: problem,
            certificates: address == nil ? nil : tls?.certificates
        )
    }

    /// Turns the listener on or off, and saves that for the next start of the broker. After `off`, its connections are
    /// closed.
    ///
    /// - Throws: `Problem`.
    func set(_ spec: RemoteSpec) async throws -> RemoteStatus {
        guard settings.configured == nil else {
            throw Problem(
                .conflict,
                "\(settings.configurationFile ?? "the configuration file") sets api.remote, which has precedence",
                hint: "change api.remote there and restart the broker"
            )
        }
        if spec.enabled { try await turnOn(spec.address ?? RemoteSpec.standardAddress) } else { try await turnOff() }
        return status()
    }

    private func turnOn(_ text: String) async throws {
        guard let wanted = SocketAddress(withPort: text) else {
            throw Problem(
                .badRequest,
                "\"\(SanitizedText(text))\" is not a numeric address with a port from 1 to 65535",
                hint: "write it as \(RemoteSpec.standardAddress) or [::]:7283"
            )
        }
        guard address != wanted else { return }
        if let address {
            throw Problem(.conflict, "the remote listener is on at \(address)", hint: "patchbay remote off")
        }
        do {
            try prepareTLS()
            bound = try Listener(on: wanted)
        } catch {
            throw Problem(
                .conflict,
                "the remote listener stays off: \(error)",
                hint: "patchbay remote on, without an address or with one of this machine"
            )
        }
        // Set before the wait below, so that a second command does not bind again.
        address = wanted
        do { try await file.write(RemoteSpec(enabled: true, address: wanted.description)) } catch {
            address = nil
            bound = nil
            throw Problem(.unavailable, "the remote listener stays off: \(error)", hint: "patchbay doctor")
        }
        stateChanges.send(())
    }

    private func turnOff() async throws {
        guard address != nil else { return }
        do { try await file.write(RemoteSpec(enabled: false)) } catch {
            throw Problem(.unavailable, "the remote listener stays on: \(error)", hint: "patchbay doctor")
        }
        (address, bound, problem) = (nil, nil, nil)
        stateChanges.send(())
        guard let server else { return }
        server.stop()
        await withCheckedContinuation { closed.append($0) }
    }
}

/// The service's side.
extension RemoteListener {
    /// Returns the service that serves while the listener is on. `makeServer` creates the server of a socket.
    package nonisolated func service(
        logger: Logger,
        makeServer: @escaping @Sendable (consuming Descriptor, UInt16, ListenerSecurity) -> APIServer
    ) -> ListenerService {
        ListenerService(
            "the remote listener",
            advice: "change api.remote or patchbay remote off",
            address: { [self] in await address },
            changes: { [self] in changes() },
            logger: logger
        ) { [self] address in
            guard let server = try await start(at: address, makeServer) else { return }
            logger.info("the remote listener is open", metadata: ["address": "\(address)"])
            let end: Result<Void, any Error>
            do { end = .success(try await server.run()) } catch { end = .failure(error) }
            await ended()
            try end.get()
        }
    }

    /// Creates the server; nil if the address has changed.
    private func start(
        at address: SocketAddress,
        _ makeServer: (consuming Descriptor, UInt16, ListenerSecurity) -> APIServer
    ) throws -> APIServer? {
        guard address == self.address else { return nil }
        let (listener, security) = try open(address)
        let server = makeServer(try listener.duplicate(), address.port ?? 0, security)
        listener.close()
        self.server = server
        return server
    }

    /// Ends the wait of `off`.
    private func ended() {
        server = nil
        closed.forEach { $0.resume() }
        closed = []
    }

    /// Returns the socket, bound by a command or now, and TLS for its connections.
    ///
    /// - Throws: `SocketError`, or the error of the key file.
    func open(_ address: SocketAddress) throws -> (listener: Listener, security: ListenerSecurity) {
        defer { stateChanges.send(()) }
        do {
            let (listener, tls) = (try bound ?? Listener(on: address), try tls ?? prepareTLS())
            (bound, problem) = (nil, nil)
            return (listener, ListenerSecurity(tls, unauthenticated: unauthenticated))
        } catch {
            problem = "\(error)"
            throw error
        }
    }
}

extension SocketAddress {
    /// Parses `ADDRESS:PORT` with a numeric address and a port above 0.
    package init?(withPort text: String) {
        guard !text.hasPrefix("tcp:"), case .tcp(let host?, let port)? = ListenAddress(text), port > 0 else {
            return nil
        }
        self.init(numeric: host, port: port)
    }
}
