import CAvahi
import Logging
import Model

/// Publishes the requested advertisements: brings Avahi's entry groups in line with the advertisement store.
struct BonjourPublisher {
    /// The state of avahi-daemon.
    enum Availability: Hashable, Sendable {
        /// The daemon is known to be absent.
        case absent
        /// The daemon is starting, or registers its host name.
        case starting
        case ready
    }

    private let store: AdvertisementStore
    private let logger: Logger
    private var advertisements: [String: AdvertisementStateMachine] = [:]

    init(store: AdvertisementStore, logger: Logger) {
        self.store = store
        self.logger = logger
    }

    /// The time at which `update` has something to do.
    var deadline: ContinuousClock.Instant? { advertisements.values.compactMap(\.deadline).min() }

    var publishedCount: Int { advertisements.values.count { $0.phase == .published } }

    /// The services that are published or are being registered.
    var services: Set<OwnAdvertisements.Service> {
        Set(
            advertisements.values.filter { $0.phase == .published || $0.phase == .registering }
                .map { OwnAdvertisements.Service(name: Array($0.name.utf8), type: $0.wanted.type.text) }
        )
    }

    /// Publishes, updates and withdraws advertisements, and reports their progress to the store.
    ///
    /// - Parameters:
    ///   - calls: The connection; nil if there is none.
    ///   - availability: The state of avahi-daemon.
    ///   - discovered: The services of all machines; nil until the initial sync is complete.
    mutating func update(on calls: (any AvahiCalls)?, availability: Availability, discovered: ServiceTable?) {
        let desired = store.takeDesired()
        let wanted = Set(desired.map(\.id))
        for id in advertisements.keys where !wanted.contains(id) {
            calls?.free(.group(id))
            advertisements[id] = nil
        }
        for (id, spec) in desired {
            var advertisement =
                advertisements[id] ?? AdvertisementStateMachine(spec, alternative: AvahiString.alternative)
            advertisement.setTXT(spec.txt)
            if availability == .ready, let calls {
                advance(&advertisement, id, on: calls, discovered: discovered)
            }
            advertisements[id] = advertisement
            store.report(id, progress(of: advertisement, availability))
        }
        store.retainPublished(wanted)
    }

    /// Handles a state change of an advertisement's entry group. The error of a failed group concerns only this group.
    mutating func handle(_ group: AvahiEvent.Group, of id: String) {
        guard var advertisement = advertisements[id] else { return }
        switch group {
        case .established:
            advertisement.established()
            logger.info(
                "published an advertisement",
                metadata: [
                    "id": "\(id)", "name": "\(SanitizedText(advertisement.name))",
                    "type": "\(advertisement.wanted.type)",
                ]
            )
        case .collided: advertisement.collided()
        case .failed(let code): advertisement.failed("Avahi returned an error: \(AvahiString.error(code))")
        }
        advertisements[id] = advertisement
    }

    /// Records that nothing is published any more, and removes what is still published on a connection.
    mutating func withdrawAll(on calls: (any AvahiCalls)?) {
        for id in advertisements.keys {
            calls?.withdraw(id)
            advertisements[id]?.withdrawn()
        }
    }

    /// Executes the next actions of an advertisement: one call, or one call per name that has to be tried.
    ///
    /// Before a name is used for the first time, it is compared with the discovered services. Avahi's own probes do not
    /// always find a conflict: a machine that announced a record less than a second ago does not answer them. In the
    /// conflict that follows, the other machine may have to change its name.
    private func advance(
        _ advertisement: inout AdvertisementStateMachine,
        _ id: String,
        on calls: any AvahiCalls,
        discovered: ServiceTable?
    ) {
        while let action = advertisement.nextAction(now: .now) {
            if action == .publish, !advertisement.wasPublished {
                guard let discovered else { return }
                if discovered.isTaken(advertisement.name, advertisement.wanted.type) {
                    advertisement.collided()
                    continue
                }
            }
            let code: CInt
            switch action {
            case .publish: code = calls.publish(id, name: advertisement.name, spec: advertisement.wanted)
            case .updateTXT: code = calls.updateTXT(id, name: advertisement.name, spec: advertisement.wanted)
            }
            switch Int(code) {
            case Int(AVAHI_OK):
                action == .publish ? advertisement.committed(now: .now) : advertisement.txtUpdated(now: .now)
            case Int(AVAHI_ERR_COLLISION): advertisement.collided()
            case _ where calls.fault != nil: return
            default: advertisement.failed("Avahi returned an error: \(AvahiString.error(code))")
            }
        }
    }

    private func progress(
        of advertisement: AdvertisementStateMachine,
        _ availability: Availability
    ) -> AdvertisementStore.Progress {
        var progress = AdvertisementStore.Progress(
            state: .waiting,
            publishedName: SanitizedText(advertisement.name),
            isStable: advertisement.isStable
        )
        switch advertisement.phase {
        case .waiting where availability != .ready:
            progress.reason = "Avahi is not available; the advertisement is published when Avahi returns"
            // A daemon that is registering its host name finishes within a second, so the caller keeps waiting.
            progress.isStable = availability == .absent
        case .waiting, .registering: progress.state = .registering
        case .published: progress.state = .published
        case .failed(let reason):
            progress.state = .failed
            progress.reason = reason
        }
        return progress
    }
}
