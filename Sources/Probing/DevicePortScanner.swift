package import Logging
package import Model
import ServiceLifecycle
import Synchronization
package import SystemIO

/// Finds debug servers that listen on a phone's loopback, where nothing announces them: tries the probe ports of every
/// attached phone over the cable, and says what answers as sightings.
///
/// While a client is present each port is tried once a second, so that an app that is started is listed within a second. A
/// refused connection costs usbmuxd 0.3 ms and the phone nothing. Without a client the pauses are longer.
package final class DevicePortScanner: Service {
    /// What it sees; for one reader. Every event matters, so none is dropped; what goes on answering is said at each try.
    package let events: AsyncStream<SightingEvent>

    private struct State: Sendable {
        var phones: Set<UDID> = []
        var learnt: Set<UInt16> = []
        var found: [USBRoute: Sighting] = [:]
        var misses: [USBRoute: Int] = [:]
        var schedule = PortSchedule()
        /// Those of `found` that may have one client only, which the next one replaces.
        var single: Set<USBRoute> = []
        /// Those of `found` that have not said what they are.
        var riddles: [USBRoute: Riddle] = [:]

        func isToBeAsked(_ key: USBRoute, at now: ContinuousClock.Instant) -> Bool {
            found[key] == nil || riddles[key].map { $0.next <= now } ?? false
        }

        /// The ports to try now, each phone's together; each is marked as tried.
        mutating func takeDue(
            _ ports: [UInt16],
            isWatched: Bool,
            at now: ContinuousClock.Instant
        ) -> [[USBRoute]] {
            let ports = Set(ports).union(learnt).sorted()
            return phones.map { udid in
                ports.map { USBRoute(udid: udid, port: $0) }.filter { key in
                    let isUrgent = isWatched || misses[key] != nil
                    return schedule.take(key, isUrgent: isUrgent, isFound: found[key] != nil, at: now)
                }
            }
        }

        mutating func drop(_ key: USBRoute) {
            found[key] = nil
            misses[key] = nil
            riddles[key] = nil
            single.remove(key)
        }
    }

    /// When a server is asked again that did not say what it is: an app that is still starting answers wrongly or late.
    private struct Riddle: Sendable {
        /// The last pause; some servers never tell, and are not to be bothered for it.
        static let longestPause = Duration.seconds(60)

        var next: ContinuousClock.Instant
        var pause = Duration.seconds(1)

        init(at now: ContinuousClock.Instant) { next = now + pause }

        mutating func wait(from now: ContinuousClock.Instant) {
            pause = min(pause * 2, Self.longestPause)
            next = now + pause
        }
    }

    /// How many ports are learnt from adverts at most.
    static let learntLimit = 32
    /// A found port must fail this often in a row before it is lost: one failed dial may be usbmuxd's full accept queue.
    static let missesToLoss = 2

    private let ports: [UInt16]
    private let dialer: any Dialer
    private let identifier: ServiceDetector
    /// Whether a stream to a port of a phone stands.
    private let isInUse: @Sendable (USBRoute) -> Bool
    /// Whether a client is present.
    private let isWatched: @Sendable () -> Bool
    private let clock = ContinuousClock()
    private let logger: Logger
    private let state = Mutex(State())
    private let out: AsyncStream<SightingEvent>.Continuation

    /// `patience` is how long a port may take for each question, dialling included.
    package init(
        ports: [UInt16],
        dialer: any Dialer,
        patience: Duration = .seconds(2),
        isInUse: @escaping @Sendable (USBRoute) -> Bool = { _ in false },
        isWatched: @escaping @Sendable () -> Bool = { true },
        logger: Logger
    ) {
        self.ports = ports
        self.isInUse = isInUse
        self.isWatched = isWatched
        self.dialer = dialer
        self.logger = logger
        identifier = ServiceDetector(dialer: dialer, patience: patience)
        (events, out) = AsyncStream.makeStream(of: SightingEvent.self)
    }

    /// The phones that are attached now. Those that went take their endpoints with them at once.
    package func set(phones: Set<UDID>) {
        let gone = state.withLock { state in
            state.phones = phones
            let gone = state.found.filter { !phones.contains($0.key.udid) }
            for key in gone.keys { state.drop(key) }
            state.schedule.keep(phones)
            return gone
        }
        for sighting in gone.values { out.yield(.lost(sighting.id)) }
    }

    /// Ports on which apps were seen on the network; the same app may answer there over the cable.
    package func learn(_ ports: Set<UInt16>) {
        state.withLock { $0.learnt = Set(ports.sorted().prefix(Self.learntLimit)) }
    }

    package func run() async throws {
        defer { out.finish() }
        try? await cancelWhenGracefulShutdown { [self] in
            while true {
                await tryAll()
                try await clock.sleep(for: PortSchedule.urgent)
            }
        }
    }

    private func tryAll() async {
        let isWatched = isWatched()
        let keys = state.withLock { $0.takeDue(ports, isWatched: isWatched, at: clock.now) }
        // Phones side by side, each phone's ports one after the other: a phone that does not answer delays only itself.
        await withDiscardingTaskGroup { group in
            for phone in keys {
                group.addTask { [self] in
                    for key in phone where !Task.isCancelled { await tryOne(key) }
                }
            }
        }
    }

    private func tryOne(_ key: USBRoute) async {
        let route = Route.usb(key)
        do {
            if state.withLock({ $0.isToBeAsked(key, at: clock.now) }) {
                see(key, as: try await identifier.identify(route))
            } else if state.withLock({ $0.single.contains(key) }), isInUse(key) {
                // A probe would end the conversation; its end will show whether the server is there.
                confirm(key)
            } else {
                let carrier = try await dialer.dial(route)
                _ = consume carrier
                confirm(key)
            }
        } catch let failure as DialError {
            miss(key, failure)
        } catch {
            // Cancelled: we are going.
        }
    }

    private func see(_ key: USBRoute, as identity: ServerIdentity) {
        let sighting = Self.sighting(of: key, as: identity)
        let isNews = state.withLock { state in
            guard state.phones.contains(key.udid) else { return false }
            state.misses[key] = nil
            let old = state.found[key]
            // It said more before: an app that is busy is still the same app.
            if old != nil, identity.kind == .tcp {
                state.riddles[key]?.wait(from: clock.now)
                return false
            }
            state.found[key] = sighting
            if identity.takesLines { state.single.insert(key) } else { state.single.remove(key) }
            if identity.isComplete {
                state.riddles[key] = nil
            } else if old == nil {
                state.riddles[key] = Riddle(at: clock.now)
            } else {
                state.riddles[key]?.wait(from: clock.now)
            }
            return old != sighting
        }
        guard isNews else { return confirm(key) }
        logger.debug(
            "a server answers on a phone",
            metadata: [
                "udid": "\(key.udid)", "port": "\(key.port)", "kind": "\(identity.kind)", "app": "\(sighting.name)",
            ]
        )
        out.yield(.seen(sighting))
    }

    /// It answers still, which is all that is said by saying it again.
    private func confirm(_ key: USBRoute) {
        let sighting = state.withLock { state in
            state.misses[key] = nil
            return state.found[key]
        }
        if let sighting { out.yield(.seen(sighting)) }
    }

    private static func sighting(of key: USBRoute, as identity: ServerIdentity) -> Sighting {
        let app = identity.app
        return Sighting(
            id: Sighting.ID(source: .usb, key: "\(key.udid)/\(key.port)"),
            kind: identity.kind,
            app: app ?? SanitizedText(""),
            appIsBundleID: app != nil,
            name: app ?? identity.name ?? SanitizedText("\(identity.kind) on port \(key.port)"),
            device: key.udid,
            role: app == nil ? Sighting.namelessRole(port: key.port) : SanitizedText(""),
            version: identity.version,
            txt: identity.wantsToken ? TXTRecord(items: [Array("auth=session-token".utf8)]) : TXTRecord(),
            routes: [.usb(key)],
            boot: identity.boot
        )
    }

    private func miss(_ key: USBRoute, _ failure: DialError) {
        let lost = state.withLock { state -> Sighting? in
            guard let sighting = state.found[key] else { return nil }
            let misses = state.misses[key, default: 0] + 1
            state.misses[key] = misses
            guard failure.reason == .refused || misses >= Self.missesToLoss else { return nil }
            state.drop(key)
            return sighting
        }
        if let lost { out.yield(.lost(lost.id)) }
    }
}
