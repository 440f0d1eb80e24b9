import CAvahi
import Logging
import Model

/// Publishing: brings the entry groups in line with the advertisement store.
extension AvahiEngine {
    var nextAdvertisementDeadline: ContinuousClock.Instant? { advertisements.values.compactMap(\.deadline).min() }

    /// - Parameter isReady: Whether the daemon can publish now.
    func advertise(isReady: Bool) {
        let desired = store.takeDesired()
        let wanted = Set(desired.map(\.id))
        for id in advertisements.keys where !wanted.contains(id) {
            connection?.free(.group(id))
            advertisements[id] = nil
        }
        for (id, spec) in desired {
            var advertisement =
                advertisements[id] ?? AdvertisementStateMachine(spec, alternative: AvahiString.alternative)
            advertisement.setTXT(spec.txt)
            if isReady, let connection { advance(&advertisement, id, on: connection) }
            advertisements[id] = advertisement
            store.report(id, progress(of: advertisement, isReady: isReady))
        }
        store.retainPublished(wanted)
        table.setPublished(
            PublishedServices(
                services: Set(
                    advertisements.values.filter { $0.phase == .published || $0.phase == .registering }
                        .map { PublishedServices.Service(name: Array($0.name.utf8), type: $0.wanted.type.text) }
                ),
                host: hostName
            )
        )
    }

    /// Handles a state change of an advertisement's entry group.
    func handleGroup(_ group: AvahiEvent.Group, _ id: String) {
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
        case .failed(let code):
            if isFault(code) { return }
            advertisement.failed("Avahi returned an error: \(AvahiString.error(code))")
        }
        advertisements[id] = advertisement
    }

    /// Withdraws all advertisements because avahi-daemon is registering a new host name. Their records point to the old
    /// one.
    func withdrawAdvertisements() {
        for id in advertisements.keys {
            connection?.withdraw(id)
            advertisements[id]?.withdrawn()
        }
    }

    /// Executes the next actions of an advertisement: one call, or one call per name that has to be tried.
    ///
    /// Before a name is used for the first time, the service table is searched for it. Avahi's own probes do not always
    /// find a conflict: a host that announced a record less than a second ago does not answer them. In the conflict
    /// that follows, the other host may have to change its name.
    private func advance(_ advertisement: inout AdvertisementStateMachine, _ id: String, on connection: AvahiConnection)
    {
        while let action = advertisement.nextAction(now: .now) {
            if action == .publish, !advertisement.wasPublished {
                if initialSync != nil { return }
                if table.isTaken(advertisement.name, advertisement.wanted.type) {
                    advertisement.collided()
                    continue
                }
            }
            let code: CInt
            switch action {
            case .publish: code = connection.publish(id, name: advertisement.name, spec: advertisement.wanted)
            case .updateTXT: code = connection.updateTXT(id, name: advertisement.name, spec: advertisement.wanted)
            }
            switch Int(code) {
            case Int(AVAHI_OK):
                action == .publish ? advertisement.committed(now: .now) : advertisement.txtUpdated(now: .now)
            case Int(AVAHI_ERR_COLLISION): advertisement.collided()
            case _ where connection.fault != nil: return
            default: advertisement.failed("Avahi returned an error: \(AvahiString.error(code))")
            }
        }
    }

    private func progress(of advertisement: AdvertisementStateMachine, isReady: Bool) -> AdvertisementStore.Progress {
        var progress = AdvertisementStore.Progress(
            state: .waiting,
            publishedName: SanitizedText(advertisement.name),
            isStable: advertisement.isStable
        )
        switch advertisement.phase {
        case .waiting where connection == nil || !isReady:
            progress.reason = "Avahi is not available; the advertisement is published when Avahi returns"
            // A daemon that is registering its host name finishes within a second, so the caller keeps waiting.
            progress.isStable = isAbsent
        case .waiting, .registering: progress.state = .registering
        case .published: progress.state = .published
        case .failed(let reason):
            progress.state = .failed
            progress.reason = reason
        }
        return progress
    }
}
