package import Logging
package import Model
import ServiceLifecycle
import Synchronization
package import SystemIO

/// Finds debug servers on the loopback of connected devices, where no Bonjour service announces them.
///
/// Tries the probe ports of every connected device over USB and reports the servers that respond as sightings.
///
/// While a client is present, each port is tried once per second, so that a started app is listed within a second. A
/// refused connection costs usbmuxd 0.3 ms and the device nothing. Without a client the intervals are longer. A port with
/// an open stream is not probed.
package final class DevicePortScanner: Service {
    /// The sightings, for a single consumer. No event is dropped. A server that still responds is reported again at
    /// each attempt.
    package let events: AsyncStream<SightingEvent>

    private struct State: Sendable {
        var devices: Set<UDID> = []
        var extraPorts: Set<UInt16> = []
        var found: [USBRoute: FoundServer] = [:]
        /// The ports of apps that phones report themselves.
        var reported: [USBRoute: PhonePort] = [:]
        /// The reported ports whose announced server has answered since it was announced.
        var verified: [USBRoute: PhonePort] = [:]
        var schedule = PortSchedule()

        func shouldDetect(_ key: USBRoute, at now: ContinuousClock.Instant) -> Bool {
            guard let server = found[key] else { return true }
            return server.identification.map { $0.next <= now } ?? false
        }

        /// Returns the ports to try now, grouped by device, and marks them as tried.
        mutating func dueRoutes(
            _ ports: Set<UInt16>,
            isWatched: Bool,
            at now: ContinuousClock.Instant
        ) -> [[USBRoute]] {
            let known = Set(found.keys).union(reported.keys)
            return devices.map { udid in
                let own = known.filter { $0.udid == udid }.map(\.port)
                return ports.union(extraPorts).union(own).sorted().map { USBRoute(udid: udid, port: $0) }.filter {
                    key in
                    let server = found[key]
                    let isUrgent = isWatched || server.map { $0.failures > 0 || $0.hasEnded } ?? false
                    return schedule.markTriedIfDue(key, isUrgent: isUrgent, isFound: server != nil, at: now)
                }
            }
        }
    }

    /// A server on a port of a device.
    private struct FoundServer: Sendable {
        var sighting: Sighting
        /// The number of failures in succession.
        var failures = 0
        /// The next attempt to identify the server; nil if it is fully identified.
        var identification: Identification?
        /// Indicates whether the observed launch has ended.
        var hasEnded = false
    }

    /// The times at which an unidentified server is probed again. An app that is still starting may respond late or
    /// wrongly.
    private struct Identification: Sendable {
        /// The longest pause between two attempts: 60 s. Some servers never identify themselves and should not be
        /// disturbed.
        static let maxPause = Duration.seconds(60)

        private(set) var next = ContinuousClock.now
        private var backoff = Backoff(from: .seconds(1), to: Self.maxPause)

        mutating func wait(from now: ContinuousClock.Instant) { next = now + backoff.next() }
    }

    /// The maximum number of ports learned from advertisements.
    static let extraPortLimit = 32
    /// The number of consecutive failures after which a server is lost. A single failed dial may come from usbmuxd's
    /// full accept queue.
    static let failuresBeforeLost = 2

    private let ports: Set<UInt16>
    private let dialer: any Dialer
    private let detector: ServiceDetector
    /// For servers that accept many clients: does not care about open streams.
    private let unrestrictedDetector: ServiceDetector
    /// Returns true if a stream to this port is open: of a tunnel, a call or a session.
    private let isInUse: @Sendable (Route) -> Bool
    /// Returns true if a client is present.
    private let isWatched: @Sendable () -> Bool
    /// The launches that are observed now. Their ports need no connection.
    private let launches: ObservedLaunches
    private let clock = ContinuousClock()
    private let logger: Logger
    private let state = Mutex(State())
    private let continuation: AsyncStream<SightingEvent>.Continuation
    /// A value for each change of the devices. The scanner sleeps until then while no device is connected.
    private let deviceChanges = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    /// The reported ports to try at once.
    private let changedPorts = AsyncStream.makeStream(of: USBRoute.self)

    /// - Parameters:
    ///   - ports: The probe ports, and the profiles for them.
    ///   - dialer: Opens the connections to devices.
    ///   - timeout: The maximum time for each request of the detection, including the dial.
    ///   - isInUse: Returns true if a stream to this port is open: of a tunnel, a call or a session.
    ///   - isWatched: Returns true if a client is present.
    ///   - launches: The launches that are observed now.
    ///   - logger: The logger.
    package init(
        ports: ProbePorts,
        dialer: any Dialer,
        timeout: Duration = .seconds(2),
        isInUse: @escaping @Sendable (Route) -> Bool = { _ in false },
        isWatched: @escaping @Sendable () -> Bool = { true },
        launches: ObservedLaunches = ObservedLaunches(),
        logger: Logger
    ) {
        self.ports = ports.all
        self.isInUse = isInUse
        self.isWatched = isWatched
        self.launches = launches
        self.dialer = dialer
        self.logger = logger
        detector = ServiceDetector(dialer: dialer, ports: ports, timeout: timeout, isInUse: isInUse)
        unrestrictedDetector = ServiceDetector(dialer: dialer, ports: ports, timeout: timeout)
        (events, continuation) = AsyncStream.makeStream(of: SightingEvent.self)
    }

    /// Sets the connected devices. Reports the servers of disconnected devices as lost at once.
    package func set(devices: Set<UDID>) {
        let gone = state.withLock { state in
            state.devices = devices
            let gone = state.found.filter { !devices.contains($0.key.udid) }
            for key in gone.keys { state.found[key] = nil }
            state.schedule.retain(devices)
            return gone
        }
        for server in gone.values { continuation.yield(.lost(server.sighting.id)) }
        deviceChanges.continuation.yield()
    }

    /// Sets the additional ports to try: ports of apps seen on the network, which may also respond over USB.
    package func addPorts(_ ports: Set<UInt16>) {
        state.withLock { $0.extraPorts = Set(ports.sorted().prefix(Self.extraPortLimit)) }
    }

    /// Sets the ports that a phone reports. New and changed ones are identified at once, and those that are gone are
    /// tried again.
    package func set(_ ports: [PhonePort], of udid: UDID) {
        let new = Dictionary(ports.map { (USBRoute(udid: udid, port: $0.port), $0) }) { $1 }
        let keys = state.withLock { state in
            let old = state.reported.filter { $0.key.udid == udid }
            let changed = Set(old.keys).union(new.keys).filter { old[$0] != new[$0] }
            for key in changed {
                state.reported[key] = new[key]
                state.verified[key] = nil
                state.found[key]?.hasEnded = true
            }
            return state.devices.contains(udid) ? changed.filter { new[$0] != nil || state.found[$0] != nil } : []
        }
        for key in keys { changedPorts.continuation.yield(key) }
    }

    /// The port as its phone reports it; nil if it does not.
    package func reportedPort(_ key: USBRoute) -> PhonePort? { state.withLock { $0.reported[key] } }

    /// Returns a reported port whose announced server has answered, once; nil otherwise.
    package func takeVerified(_ key: USBRoute) -> PhonePort? { state.withLock { $0.verified.removeValue(forKey: key) } }

    /// Tries the ports that are due every second while a device is connected, until graceful shutdown or cancellation.
    package func run() async throws {
        defer { continuation.finish() }
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                group.addTask { [self] in try? await scanRepeatedly() }
                for await key in changedPorts.stream { group.addTask { [self] in await probe(key) } }
            }
        }
    }

    private func scanRepeatedly() async throws {
        for await _ in deviceChanges.stream {
            while state.withLock({ !$0.devices.isEmpty }) {
                await scan()
                try await clock.sleep(for: PortSchedule.urgent)
            }
        }
    }

    private func scan() async {
        let isWatched = isWatched()
        let keys = state.withLock { $0.dueRoutes(ports, isWatched: isWatched, at: clock.now) }
        // Devices are probed in parallel and the ports of one device in sequence, so a silent device delays only
        // itself.
        await withDiscardingTaskGroup { group in
            for device in keys {
                group.addTask { [self] in
                    for key in device where !Task.isCancelled { await probe(key) }
                }
            }
        }
    }

    private func probe(_ key: USBRoute) async {
        let route = Route.usb(key)
        if state.withLock({ $0.found[key]?.hasEnded ?? false }) { return await identifyAgain(key) }
        // Some servers accept one client and drop the old one. The end of the open stream will show whether the server
        // still runs.
        guard !isInUse(route) else { return stillOpen(key) }
        do {
            if state.withLock({ $0.shouldDetect(key, at: clock.now) }) {
                let service = try await detect(key, by: detector)
                await verifyFormerPorts(of: service, foundAt: key)
                opened(key, as: service)
            } else if launches[route] != nil {
                stillOpen(key)
            } else if state.withLock({ $0.found[key]?.sighting.kind.acceptsManyClients == true }) {
                // Nothing shows that the launch is still the same.
                await identifyAgain(key)
            } else {
                let connection = try await dialer.dial(route)
                _ = consume connection
                stillOpen(key)
            }
        } catch let failure as DialError {
            failed(key, failure)
        } catch is PortInUse {
            // A stream was opened after the first requests of the detection.
            stillOpen(key)
        } catch {
            // Cancelled by shutdown.
        }
    }

    /// Identifies the server on a port again, because the launch that was observed there has ended.
    package func recheck(_ key: USBRoute) async {
        state.withLock { $0.found[key]?.hasEnded = true }
        await identifyAgain(key)
    }

    /// Identifies the server on a port whose launch has ended. What answers now may be another app.
    private func identifyAgain(_ key: USBRoute) async {
        guard let sighting = state.withLock({ $0.found[key]?.sighting }) else { return }
        do {
            let service = try await detect(key, like: sighting)
            let failures = state.withLock { $0.found[key]?.failures ?? 0 }
            // An app that is starting may not answer yet.
            guard service.isIdentified || failures >= Self.failuresBeforeLost else {
                return state.withLock { $0.found[key]?.failures += 1 }
            }
            await verifyFormerPorts(of: service, foundAt: key)
            remove(key, unless: service)
            opened(key, as: service)
        } catch let failure as DialError {
            failed(key, failure)
        } catch {
            // The port is in use, or the scanner was cancelled. The next scan tries again.
        }
    }

    /// Detects the server on a port where an app was found.
    private func detect(_ key: USBRoute, like sighting: Sighting) async throws -> ServerIdentity {
        try await detect(key, by: sighting.kind.acceptsManyClients ? unrestrictedDetector : detector)
    }

    /// Detects the server on a port. The package of a phone's app is its name, unless the server names another one.
    private func detect(_ key: USBRoute, by detector: ServiceDetector) async throws -> ServerIdentity {
        let reported = state.withLock { $0.reported[key] }
        var service: ServerIdentity
        if reported?.announcement?.kind == .dartVM {
            // A Dart VM service gets no requests of a probe. The phone says that the app listens.
            let connection = try await dialer.dial(.usb(key))
            _ = consume connection
            service = ServerIdentity(kind: .dartVM)
        } else {
            service = try await detector.detect(.usb(key))
        }
        if service.kind != .tcp { service.app = service.app ?? reported?.app }
        return service
    }

    /// Reports the server on a port as lost if another app answers there.
    private func remove(_ key: USBRoute, unless service: ServerIdentity) {
        let lost = state.withLock { state -> Sighting? in
            guard let sighting = state.found[key]?.sighting,
                Self.sighting(of: key, as: service).isOtherApp(than: sighting)
            else { return nil }
            state.found[key] = nil
            return sighting
        }
        if let lost { continuation.yield(.lost(lost.id)) }
    }

    /// Verifies the other ports on which this app was found, because a relaunched app may listen on another port.
    private func verifyFormerPorts(of service: ServerIdentity, foundAt key: USBRoute) async {
        let sighting = Self.sighting(of: key, as: service)
        let others = state.withLock { $0.found.filter { $0.key.udid == key.udid && $0.key.port != key.port } }
        for (former, other) in others where !sighting.isOtherApp(than: other.sighting) {
            do { remove(former, unless: try await detect(former, like: other.sighting)) } catch let failure as DialError
            {
                failed(former, failure)
            } catch {
                // The port is in use, so its server runs.
            }
        }
    }

    private func opened(_ key: USBRoute, as service: ServerIdentity) {
        let sighting = Self.sighting(of: key, as: service)
        let isNews = state.withLock { state in
            guard state.devices.contains(key.udid) else { return false }
            let old = state.found[key]
            var server = old ?? FoundServer(sighting: sighting, identification: Identification())
            (server.failures, server.hasEnded) = (0, false)
            server.identification?.wait(from: clock.now)
            // The server identified itself before: a busy app is still the same app.
            if old == nil || service.isIdentified || old?.sighting.isPartial == true && !service.isPartial {
                server.sighting = sighting
                if service.isComplete { server.identification = nil }
            }
            state.found[key] = server
            if let reported = state.reported[key], let announcement = reported.announcement,
                announcement.kind == service.kind, (service.port ?? key.port) == key.port
            {
                state.verified[key] = reported
            }
            return old?.sighting != server.sighting
        }
        guard isNews else { return stillOpen(key) }
        logger.debug(
            "found a server on a device",
            metadata: [
                "udid": "\(key.udid)", "port": "\(key.port)", "kind": "\(service.kind)", "app": "\(sighting.name)",
            ]
        )
        report(sighting)
    }

    /// Reports a server, unless it is an unknown one on a port that only the phone named. An app may have many ports.
    private func report(_ sighting: Sighting) {
        guard
            sighting.kind != .tcp || ports.contains(sighting.port)
                || state.withLock({ $0.extraPorts.contains(sighting.port) })
        else { return }
        continuation.yield(.seen(sighting))
    }

    /// Reports a known server again, because it still responds.
    private func stillOpen(_ key: USBRoute) {
        let sighting = state.withLock { state in
            state.found[key]?.failures = 0
            return state.found[key]?.sighting
        }
        if let sighting { report(sighting) }
    }

    private static func sighting(of key: USBRoute, as service: ServerIdentity) -> Sighting {
        let app = service.app
        return Sighting(
            id: Sighting.ID(source: .init(of: key.udid.platform), key: "\(key.udid)/\(key.port)"),
            kind: service.kind,
            app: app ?? SanitizedText(""),
            appIsBundleID: app != nil,
            name: app ?? service.name ?? SanitizedText("\(service.kind) on port \(key.port)"),
            device: key.udid,
            role: app == nil ? Sighting.namelessRole(port: key.port) : SanitizedText(""),
            version: service.version,
            txt: service.wantsToken ? TXTRecord(items: [Array("auth=session-token".utf8)]) : TXTRecord(),
            routes: [.usb(key)],
            launchID: service.launchID,
            isPartial: service.isPartial
        )
    }

    private func failed(_ key: USBRoute, _ failure: DialError) {
        let lost = state.withLock { state -> Sighting? in
            guard var server = state.found[key] else { return nil }
            server.failures += 1
            let isLost = failure.reason == .refused || server.failures >= Self.failuresBeforeLost
            state.found[key] = isLost ? nil : server
            return isLost ? server.sighting : nil
        }
        if let lost { continuation.yield(.lost(lost.id)) }
    }
}

extension ServerIdentity {
    /// True if the server told what it is, and no request is without a response.
    fileprivate var isIdentified: Bool { kind != .tcp && !isPartial }
}

extension Sighting {
    /// Returns true if two servers on a device are different apps. A server without a name is its port.
    fileprivate func isOtherApp(than other: Sighting) -> Bool {
        (kind, app, role) != (other.kind, other.app, other.role)
    }
}
