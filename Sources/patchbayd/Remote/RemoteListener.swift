import API
import Discovery
import Logging
import Model
import SystemIO
import Transport

/// The state of the remote listener, and the commands that turn it on and off. `RemoteListenerService` serves.
actor RemoteListener {
    /// The settings that do not change while the broker runs.
    struct Settings: Sendable {
        /// The address of the configuration file; nil if the file has none.
        let configured: SocketAddress?
        /// The path of the configuration file, for messages.
        let configurationFile: String?
        /// The interfaces whose addresses are shown.
        let interfaces: InterfaceFilter
    }

    private let settings: Settings
    private let identityFile: TLSIdentityFile
    private let file: StateFile<RemoteSpec>
    private let limiter: ConnectionLimiter
    private let unauthenticated = UnauthenticatedConnectionLimiter()

    private var pin: KeyPin?
    private var security: ListenerSecurity?
    /// The address at which to listen; nil if the listener is off.
    private(set) var address: SocketAddress?
    /// The socket that a command has bound, until the service takes it.
    private var bound: Listener?
    private var isListening = false
    private var problem: String?
    private var isRunning = false
    private var wakeUp: AsyncStream<Void>.Continuation?
    private var closed: [CheckedContinuation<Void, Never>] = []
    private let stateChanges = Broadcast<Void>(slow: .keepsNewest(1))

    /// Restores the saved state. The configuration file wins over the saved state.
    ///
    /// - Throws: `DaemonError` if the listener is on and its key file cannot be used.
    init(
        _ settings: Settings,
        identityFile: TLSIdentityFile,
        file: StateFile<RemoteSpec>,
        limiter: ConnectionLimiter
    ) async throws {
        self.settings = settings
        self.identityFile = identityFile
        self.file = file
        self.limiter = limiter
        let saved = try await DaemonError.reading { () async throws(StateError) in try await file.read() }
        let savedAddress = saved.flatMap { $0.enabled ? $0.address.flatMap(SocketAddress.init(withPort:)) : nil }
        address = settings.configured ?? savedAddress
        pin = try? identityFile.load()?.pin
        guard address != nil else { return }
        do { try prepareTLS() } catch { throw DaemonError.state(reason: "\(error)") }
    }

    /// Loads the key, or creates it at the first time.
    private func prepareTLS() throws {
        let identity = try identityFile.loadOrCreate()
        security = ListenerSecurity(try ServerTLS(identity: identity), unauthenticated: unauthenticated)
        pin = identity.pin
    }

    private func wake() { wakeUp?.yield() }

    /// Subscribes to changes of the state. A slow subscriber gets one element for several changes.
    nonisolated func changes() -> AsyncStream<Void> { stateChanges.subscribe() }
}

extension ServerTLS: TransportSecurity {}

/// The commands of the API.
extension RemoteListener: RemoteListenerControl {
    func status() -> RemoteStatus {
        let port = address?.port ?? 0
        let hosts: [String] =
            switch address {
            case let address? where address.isUnspecified: HostAddresses.reachable(on: settings.interfaces)
            case let address?: [address.host]
            case nil: []
            }
        return RemoteStatus(
            state: address == nil ? .off : isListening ? .listening : .waiting,
            address: address?.description,
            configured: settings.configured != nil,
            pin: pin,
            reachable: hosts.compactMap { SocketAddress(numeric: $0, port: port)?.description },
            connections: limiter.remoteConnections,
            refusedHandshakes: unauthenticated.refusedHandshakes,
            problem: problem
        )
    }

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
        isListening = true
        stateChanges.send(())
        wake()
    }

    private func turnOff() async throws {
        guard address != nil else { return }
        do { try await file.write(RemoteSpec(enabled: false)) } catch {
            throw Problem(.unavailable, "the remote listener stays on: \(error)", hint: "patchbay doctor")
        }
        (address, bound, problem, isListening) = (nil, nil, nil, false)
        stateChanges.send(())
        guard isRunning else { return }
        await withCheckedContinuation { continuation in
            closed.append(continuation)
            wake()
        }
    }
}

/// The service's side.
extension RemoteListener {
    /// Begins a phase, in which the address stays the same.
    ///
    /// - Returns: The address, and a stream that yields when the address has changed.
    func beginPhase() -> (address: SocketAddress?, changes: AsyncStream<Void>) {
        let (changes, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        wakeUp = continuation
        isRunning = true
        resumeClosed()
        return (address, changes)
    }

    /// Ends a phase, when its connections are closed.
    func endPhase(isLast: Bool) {
        if isLast { (isRunning, isListening) = (false, false) }
        resumeClosed()
    }

    /// Ends the wait of `off`. Between two phases there are no connections.
    private func resumeClosed() {
        closed.forEach { $0.resume() }
        closed = []
    }

    /// Returns the socket, bound by a command or now, and TLS for its connections.
    ///
    /// - Throws: `SocketError`.
    func open(_ address: SocketAddress) throws -> (listener: Listener, security: ListenerSecurity?) {
        defer { stateChanges.send(()) }
        do {
            let listener = try bound ?? Listener(on: address)
            (bound, isListening, problem) = (nil, true, nil)
            return (listener, security)
        } catch {
            (isListening, problem) = (false, "\(error)")
            throw error
        }
    }
}

extension SocketAddress {
    /// Parses `ADDRESS:PORT` with a numeric address and a port above 0.
    init?(withPort text: String) {
        guard !text.hasPrefix("tcp:"), case .tcp(let host?, let port)? = ListenAddress(text), port > 0 else {
            return nil
        }
        self.init(numeric: host, port: port)
    }
}
